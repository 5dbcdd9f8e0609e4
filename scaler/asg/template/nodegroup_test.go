package template

import (
	"context"
	"slices"
	"testing"
	"time"

	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
)

// countedEKS notes which managed groups it is asked about.
type countedEKS struct {
	Describer
	asked []string
}

func (c *countedEKS) Nodegroup(_ context.Context, _, name string) (*ekstypes.Nodegroup, error) {
	c.asked = append(c.asked, name)
	return &ekstypes.Nodegroup{}, nil
}

// Each managed group gets its turn, also after others were deleted.
func TestDeletedNodegroupsTakeNobodysTurn(t *testing.T) {
	now := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
	source := &countedEKS{}
	book := &nodegroupBook{aws: source, now: func() time.Time { return now }, known: map[string]nodegroup{}}
	look := func(names ...string) {
		for _, name := range names {
			if _, err := book.get(t.Context(), "prod", name, false); err != nil {
				t.Fatal(err)
			}
		}
		now = now.Add(RedrawEvery)
	}
	look("blue-1", "blue-2", "blue-3", "green-1", "green-2", "green-3")
	source.asked = nil
	for range 8 { // blue is deleted
		look("green-1", "green-2", "green-3")
	}
	for _, name := range []string{"green-1", "green-2", "green-3"} {
		if !slices.Contains(source.asked, name) {
			t.Errorf("%s was not read again; read were %v", name, source.asked)
		}
	}
}
