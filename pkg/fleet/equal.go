package fleet

import (
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// meaning compares by what values mean: 1 cpu is 1000m, no labels are an empty
// map, and noon is noon in every time zone.
var meaning = apiequality.Semantic.Copy()

func init() {
	if err := meaning.AddFunc(time.Time.Equal); err != nil {
		panic(err) // the function has the form that AddFunc wants
	}
}

// Equal reports whether two values of this package's types mean the same.
func Equal[T any](a, b T) bool { return meaning.DeepEqual(a, b) }
