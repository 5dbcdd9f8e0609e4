package wire

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
)

// Limits are those of one paged operation.
type Limits struct {
	Param    string // MaxRecords or MaxResults
	Default  int    // where the parameter is not given
	Min, Max int
	// BadToken is the code of the error for a token that is not one.
	BadToken string
}

// Page cuts one page out of all, and gives the token of the next page, "" after the last.
func Page[T any](v Values, operation string, l Limits, all []T) ([]T, string, error) {
	size, err := v.Int(l.Param, l.Default)
	if err != nil {
		return nil, "", err
	}
	if err := l.check(size); err != nil {
		return nil, "", err
	}
	start, err := l.start(v.Get("NextToken"), operation)
	if err != nil {
		return nil, "", err
	}
	start = min(start, len(all))
	end := min(start+size, len(all))
	if end == len(all) {
		return all[start:end], "", nil
	}
	return all[start:end], base64.StdEncoding.EncodeToString([]byte(operation + "/" + strconv.Itoa(end))), nil
}

// check words a page size out of bounds as the service does.
func (l Limits) check(size int) error {
	low := l.Param[:1]
	name := strings.ToLower(low) + l.Param[1:]
	if l.BadToken == InvalidNextToken {
		switch {
		case size > l.Max:
			return cloud.Errorf(400, "ValidationError", "1 validation error detected: Value '%d' at '%s' failed to satisfy constraint: Member must have value less than or equal to %d", size, name, l.Max)
		case size < l.Min:
			return cloud.Errorf(400, "ValidationError", "1 validation error detected: Value '%d' at '%s' failed to satisfy constraint: Member must have value greater than or equal to %d", size, name, l.Min)
		}
		return nil
	}
	switch {
	case size > l.Max:
		return cloud.Errorf(400, "InvalidParameterValue", "Value ( %d ) for parameter %s is invalid. Expecting a value less than or equal to %d.", size, name, l.Max)
	case size < l.Min:
		return cloud.Errorf(400, "InvalidParameterValue", "Value ( %d ) for parameter %s is invalid. Expecting a value greater than %d.", size, name, l.Min)
	}
	return nil
}

// InvalidNextToken is the code of Auto Scaling for a bad token, InvalidParameterValue that of EC2.
const (
	InvalidNextToken      = "InvalidNextToken"
	InvalidParameterValue = "InvalidParameterValue"
)

func (l Limits) start(token, operation string) (int, error) {
	if token == "" {
		return 0, nil
	}
	text, err := base64.StdEncoding.DecodeString(token)
	if err == nil {
		var n int
		if _, err = fmt.Sscanf(string(text), operation+"/%d", &n); err == nil && n >= 0 {
			return n, nil
		}
	}
	if l.BadToken == InvalidNextToken {
		return 0, cloud.Errorf(400, InvalidNextToken, "The NextToken value is not valid.")
	}
	return 0, cloud.Errorf(400, InvalidParameterValue, "Value (%s) for parameter nextToken is invalid. Unable to parse pagination token.", token)
}
