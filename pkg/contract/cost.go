package contract

import (
	"fmt"
	"strconv"
)

// MostDisruptionCost bounds what people may say that an eviction costs: sums of it stay exact.
const MostDisruptionCost = 1_000_000

// DisruptionCost reads what it costs to evict a pod with these annotations, in dollars. set is false
// where they do not say; what is no such number is an error that quotes it.
func DisruptionCost(annotations map[string]string) (dollars float64, set bool, err error) {
	text, set := annotations[AnnotationDisruptionCost]
	if !set {
		return 0, false, nil
	}
	dollars, err = strconv.ParseFloat(text, 64)
	if err != nil || !(dollars >= 0 && dollars <= MostDisruptionCost) { // which NaN is not
		return 0, true, fmt.Errorf("annotation %s is %s: want dollars, from 0 to %d", AnnotationDisruptionCost, quoted(text), MostDisruptionCost)
	}
	return dollars, true, nil
}
