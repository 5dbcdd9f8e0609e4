package contract

import (
	"strings"
	"testing"
)

func TestDisruptionCost(t *testing.T) {
	for _, c := range []struct {
		text    string
		dollars float64
		wrong   bool
	}{
		{"0", 0, false}, {"1.50", 1.5, false}, {"1e6", 1e6, false},
		{"", 0, true}, {"cheap", 0, true}, {"-1", 0, true}, {"NaN", 0, true}, {"Inf", 0, true}, {"1e7", 0, true}, {"$2", 0, true},
	} {
		dollars, set, err := DisruptionCost(map[string]string{AnnotationDisruptionCost: c.text})
		if dollars != c.dollars || !set || (err != nil) != c.wrong {
			t.Errorf("%q: %v %t %v", c.text, dollars, set, err)
		}
		if err != nil && !strings.Contains(err.Error(), AnnotationDisruptionCost) {
			t.Errorf("%q: %q does not name the annotation", c.text, err)
		}
	}
	if dollars, set, err := DisruptionCost(nil); dollars != 0 || set || err != nil {
		t.Errorf("without the annotation: %v %t %v", dollars, set, err)
	}
}
