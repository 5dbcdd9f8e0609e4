package fleet_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"windlass.dev/windlass/pkg/fleet"
)

// TestParseQuantity: what is read is what Kubernetes reads, and can be computed with at once; an
// error is short, however long the text is.
func TestParseQuantity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sign := rapid.SampledFrom([]string{"", "-", "+"})
		digits := rapid.StringMatching(`[0-9]{0,30}(\.[0-9]{0,30})?`).Draw(t, "digits")
		exponent := rapid.OneOf(rapid.IntRange(0, 99), rapid.IntRange(0, 2_000_000_000)).Draw(t, "exponent")
		suffix := rapid.SampledFrom([]string{"", "m", "Gi", "E", "x", "e", fmt.Sprint("e", exponent), fmt.Sprint("E-", exponent), fmt.Sprint("e+", exponent)}).Draw(t, "suffix")
		text := sign.Draw(t, "sign") + digits + suffix
		got, err := fleet.ParseQuantity(text)
		if exponent > 99 && len(suffix) > 2 {
			if err == nil {
				t.Fatalf("%q is read", text)
			}
			return
		}
		want, wrong := resource.ParseQuantity(text)
		if (err == nil) != (wrong == nil) && len(text) <= 64 || err == nil && got.Cmp(want) != 0 {
			t.Fatalf("%q is %s, %v; want %s, %v", text, got.String(), err, want.String(), wrong)
		}
		got.Add(want)
		_, _, _ = got.Value(), got.MilliValue(), got.String()
	})
	for text, want := range map[string]string{
		"1e999999999":              `"1e999999999" is beyond all quantities: want one such as 2, 500m or 20Gi`,
		"0e999999999":              `"0e999999999" is beyond all quantities`,
		"many":                     `"many" is no quantity such as 2, 500m or 20Gi`,
		"":                         `"" is no quantity`,
		strings.Repeat("9", 1<<20): `99…" is beyond all quantities`,
	} {
		if q, err := fleet.ParseQuantity(text); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 150 {
			t.Errorf("%.20s is %s, %.200v; want %s", text, q.String(), err, want)
		}
	}
}
