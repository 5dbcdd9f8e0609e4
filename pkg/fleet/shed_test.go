package fleet

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
)

var dawn = time.Date(2025, 1, 1, 6, 0, 0, 0, time.UTC)

// since are so many entries, each a second younger than the one before.
func since(prefix string, n int) map[string]time.Time {
	m := map[string]time.Time{}
	for i := range n {
		m[fmt.Sprintf("%s-%04d", prefix, i)] = dawn.Add(time.Duration(i) * time.Second)
	}
	return m
}

func sizeOf(t *testing.T, s State) int {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return len(text)
}

// What costs least to lose goes first, one part after the other, and of a part no more than
// has to; what must not be lost never goes.
func TestShedToOrder(t *testing.T) {
	whole := State{
		Seen:     map[string]resource.Quantity{"m5.large/ami-1": resource.MustParse("7Gi")},
		Disputed: since("pod", 100),
		Awaited:  since("owed", 100),
		Launches: map[string]Launch{"web:a": {Token: "t"}},
		Unjoined: since("i", 100),
		Outlived: since("i", 100),
	}
	for _, c := range []struct {
		less int // bytes
		want Shed
	}{
		{0, nil},
		{1, Shed{"seen": 1}},
		{200, Shed{"seen": 1, "disputed": 6}},
		{4_000, Shed{"seen": 1, "disputed": 100, "awaited": 17}},
		{100_000, Shed{"seen": 1, "disputed": 100, "awaited": 100}},
	} {
		most := sizeOf(t, whole) - c.less
		got, text, shed, err := whole.ShedTo(most)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, shed); diff != "" {
			t.Errorf("%d bytes less: %s", c.less, diff)
		}
		if len(text) != sizeOf(t, got) || len(text) > most && c.less < 100_000 {
			t.Errorf("%d bytes less: %d bytes", c.less, len(text))
		}
		if !Equal(got.Launches, whole.Launches) || !Equal(got.Unjoined, whole.Unjoined) || !Equal(got.Outlived, whole.Outlived) {
			t.Errorf("%d bytes less: lost what must not be lost", c.less)
		}
	}
	if len(whole.Seen) != 1 || len(whole.Disputed) != 100 {
		t.Error("the state that was given has changed")
	}
}

// The same state always loses the same; and where what was lost is noted again, from now on,
// that goes again and nothing else: the state comes to rest.
func TestShedToComesToRest(t *testing.T) {
	whole := State{Disputed: since("pod", 500)}
	most := sizeOf(t, whole) / 2
	first, _, _, err := whole.ShedTo(most)
	if err != nil {
		t.Fatal(err)
	}
	if _, kept := first.Disputed["pod-0000"]; !kept {
		t.Error("the oldest clock went, which lost most")
	}
	again := State{Disputed: maps.Clone(first.Disputed)}
	for key := range whole.Disputed {
		if _, kept := first.Disputed[key]; !kept {
			again.Disputed[key] = dawn.Add(time.Hour)
		}
	}
	second, _, _, err := again.ShedTo(most)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Error(diff)
	}
}

// Every part that is given up is one of a state, and named once.
func TestShedsArePartsOfAState(t *testing.T) {
	var seen []string
	for _, x := range sheds {
		if !slices.Contains(StateParts(), x.part) || slices.Contains(seen, x.part) {
			t.Errorf("%s is no part, or named twice", x.part)
		}
		seen = append(seen, x.part)
	}
}

func TestDiffering(t *testing.T) {
	a := State{GrownAt: map[string]time.Time{"web": dawn}, Unjoined: map[string]time.Time{}}
	b := State{GrownAt: map[string]time.Time{"web": dawn.In(time.FixedZone("", 3600))}, Replacement: &NodeReplacement{Group: "web"}, Launches: map[string]Launch{"web:a": {}}}
	if got := Differing(a, b); !slices.Equal(got, []string{"launches", "swap"}) {
		t.Errorf("parts %v", got)
	}
}
