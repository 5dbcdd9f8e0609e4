package fleet_test

import (
	"strings"
	"testing"

	"windlass.dev/windlass/pkg/fleet"
)

func TestParseHeadRoom(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "",
		"10%":                        "10%",
		"2.5 percent":                "2.5%",
		"pods=5,memory=1Gi,cpu=500m": "pods=5,cpu=500m,memory=1Gi",
		"pods=2 cpu=1":               "pods=2,cpu=1",
		"pods=3":                     "pods=3",
		"0%":                         "",
	} {
		got, err := fleet.ParseHeadroom(text)
		if err != nil || got.String() != want {
			t.Errorf("%q is %q, %v: want %q", text, got, err, want)
		}
		if again, err := fleet.ParseHeadroom(got.String()); err != nil || !fleet.Equal(again, got) && !got.IsZero() {
			t.Errorf("%q is read back as %q, %v", got, again, err)
		}
	}
	for _, text := range []string{"10", "-1%", "NaN%", "2000%", "cpu=1", "pods=0,cpu=1", "pods=x", "pods=20001,cpu=1", "pods=1,cpu=-1", "pods=1,cpu", "pods=1,=2"} {
		if got, err := fleet.ParseHeadroom(text); err == nil {
			t.Errorf("%q is taken for %q", text, got)
		}
	}
	for _, word := range []string{"cpu=1e999999999", "memory=1e-999999999"} {
		if _, err := fleet.ParseHeadroom("pods=1," + word); err == nil || !strings.Contains(err.Error(), word+": want a quantity") {
			t.Errorf("%s: %v, want it named", word, err)
		}
	}
}
