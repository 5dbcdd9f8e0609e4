package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Headroom is room that is kept free for pods that are still to come: as much as so many
// pods of a size would take, or in pieces a percentage of what is requested. The zero
// value keeps none.
type Headroom struct {
	// Percent is that of the cpu and memory that pods request.
	Percent float64 `json:"percent,omitempty"`
	// Pods is how many of them, and Each what one of them requests.
	Pods int                 `json:"pods,omitempty"`
	Each corev1.ResourceList `json:"each,omitempty"`
}

// HeadroomPiece is what a percentage is kept free in pieces of: what a small pod of the
// usual proportion requests, that of the instance types m5 and m6.
var HeadroomPiece = corev1.ResourceList{
	corev1.ResourceCPU:    resource.MustParse("250m"),
	corev1.ResourceMemory: resource.MustParse("1Gi"),
}

// MostHeadroom is how many pods a flag or a tag may keep room for, as many as all CapacityBuffers
// do by default: a million took an evaluation three seconds and a gigabyte.
const MostHeadroom = 20_000

// IsZero reports whether no room is kept.
func (h Headroom) IsZero() bool { return h.Percent == 0 && h.Pods == 0 }

// ParseHeadroom reads 10% or pods=5,cpu=500m,memory=1Gi; nothing for none. As tags of
// AWS have neither a percent sign nor a comma, 10 percent and spaces will do too.
func ParseHeadroom(text string) (Headroom, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return Headroom{}, nil
	}
	for _, sign := range []string{"%", "percent"} {
		if number, ok := strings.CutSuffix(text, sign); ok {
			percent, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			if err != nil || !(percent >= 0 && percent <= 1000) { // which NaN is not
				return Headroom{}, fmt.Errorf("%q is no percentage: want 0%% to 1000%%", text)
			}
			return Headroom{Percent: percent}, nil
		}
	}
	h := Headroom{Each: corev1.ResourceList{}}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		if err := h.read(word); err != nil {
			return Headroom{}, err
		}
	}
	if h.Pods == 0 {
		return Headroom{}, fmt.Errorf("%q does not say how many pods: want such as pods=5,cpu=500m,memory=1Gi, or 10%%", text)
	}
	return h, nil
}

func (h *Headroom) read(word string) error {
	key, value, ok := strings.Cut(word, "=")
	if !ok || key == "" {
		return fmt.Errorf("%q is no word such as pods=5 or cpu=500m", word)
	}
	if key == string(corev1.ResourcePods) {
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > MostHeadroom {
			return fmt.Errorf("pods=%s: want 1 to %d", value, MostHeadroom)
		}
		h.Pods = n
		return nil
	}
	q, err := ParseQuantity(value)
	if err != nil || q.Sign() <= 0 {
		return fmt.Errorf("%s=%s: want a quantity such as 500m or 1Gi", key, value)
	}
	h.Each[corev1.ResourceName(key)] = q
	return nil
}

// Piece is what a pod requests for which room is kept.
func (h Headroom) Piece() corev1.ResourceList {
	if h.Percent > 0 {
		return HeadroomPiece
	}
	return h.Each
}

// String is the text that ParseHeadroom reads, and empty for none.
func (h Headroom) String() string {
	switch {
	case h.Percent > 0:
		return strconv.FormatFloat(h.Percent, 'g', -1, 64) + "%"
	case h.Pods == 0:
		return ""
	}
	words := []string{"pods=" + strconv.Itoa(h.Pods)}
	for _, name := range slices.Sorted(maps.Keys(h.Each)) {
		q := h.Each[name]
		words = append(words, string(name)+"="+q.String())
	}
	return strings.Join(words, ",")
}

// Set makes a Headroom the value of a flag.
func (h *Headroom) Set(text string) (err error) {
	*h, err = ParseHeadroom(text)
	return err
}

// Type names it in the usage.
func (h *Headroom) Type() string { return "percentage or pods" }
