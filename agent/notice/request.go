package notice

import "windlass.dev/windlass/pkg/contract"

// ParseRequest reads the value of the drain-request annotation.
func ParseRequest(value string) (Notice, error) {
	r, err := contract.ParseRequest(value)
	if err != nil {
		return Notice{}, err
	}
	return Notice{
		ID:       r.ID,
		Cause:    causeOf(r),
		Kind:     r.Kind,
		Source:   FromRequest,
		Reason:   r.Reason,
		By:       r.By,
		At:       r.At.Time,
		Deadline: r.Deadline.Time,
	}, nil
}

// causeOf a request: the scaler answers notices of the metadata by their id.
func causeOf(r contract.Request) Cause {
	if c, ok := OfMetadata(r.ID); ok {
		return c
	}
	if r.Kind == contract.KindScaleDown {
		return ScaleDown
	}
	return Request
}
