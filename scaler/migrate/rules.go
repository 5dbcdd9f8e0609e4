package migrate

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// rules translate a value that is sound for its kind. A flag may become several values.
var rules = map[string]func(value string) ([]string, error){
	"":                 func(v string) ([]string, error) { return []string{v}, nil },
	"commas":           commas,
	"notneg":           notNegative,
	"not":              not,
	"lower":            level,
	"other":            other,
	"steps":            steps,
	"cordon":           when("true", "spot=cordon", "maintenance=cordon"),
	"spot":             when("false", "spot=ignore"),
	"maintenance":      when("false", "maintenance=ignore"),
	"rebalance-cordon": when("true", "rebalance=cordon"),
	"rebalance-drain":  when("true", "rebalance=drain"),
	// The flag becomes nothing; something is to be removed beside it.
	"queue": func(v string) ([]string, error) { return []string{v}, nil },
}

func commas(value string) ([]string, error) {
	var names []string
	for name := range strings.SplitSeq(value, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names, nil
}

func notNegative(value string) ([]string, error) {
	if strings.HasPrefix(value, "-") {
		return []string{"0s"}, nil
	}
	return []string{value}, nil
}

func not(value string) ([]string, error) {
	return []string{strconv.FormatBool(value != "true")}, nil
}

func level(value string) ([]string, error) {
	levels := []string{"debug", "info", "warn", "error"}
	value = strings.ToLower(value)
	if !slices.Contains(levels, value) {
		return nil, fmt.Errorf("there is no such level: want one of %s", strings.Join(levels, ", "))
	}
	return []string{value}, nil
}

// other leaves out the name that is seen in any case.
func other(value string) ([]string, error) {
	if value == "cluster-autoscaler" {
		return nil, nil
	}
	return []string{value}, nil
}

// steps makes seconds durations.
func steps(value string) ([]string, error) {
	var all []string
	for step := range strings.SplitSeq(value, ",") {
		priority, seconds, ok := strings.Cut(strings.TrimSpace(step), ":")
		_, wrongPriority := strconv.ParseInt(priority, 10, 32)
		_, wrongSeconds := strconv.ParseUint(seconds, 10, 31)
		if !ok || wrongPriority != nil || wrongSeconds != nil {
			return nil, fmt.Errorf("%q is no step: want PRIORITY:SECONDS, such as 1000:30", step)
		}
		all = append(all, priority+":"+seconds+"s")
	}
	return []string{strings.Join(all, ",")}, nil
}

// when gives words for one value, and none for the other, which is the default.
func when(value string, words ...string) func(string) ([]string, error) {
	return func(v string) ([]string, error) {
		if v != value {
			return nil, nil
		}
		return words, nil
	}
}

var (
	plainDuration = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`)
	plainFloat    = regexp.MustCompile(`^[0-9]*\.?[0-9]+$`)
)

// sound returns a value in the form that flags and the chart's schema have for its kind.
func sound(kind, value string) (string, error) {
	switch kind {
	case boolean:
		is, err := strconv.ParseBool(value)
		if err != nil {
			return "", fmt.Errorf("want true or false")
		}
		return strconv.FormatBool(is), nil
	case integer:
		n, err := strconv.ParseInt(value, 0, 64)
		if err != nil {
			return "", fmt.Errorf("want a whole number")
		}
		return strconv.FormatInt(n, 10), nil
	case float:
		f, err := strconv.ParseFloat(value, 64)
		if err != nil || f != f {
			return "", fmt.Errorf("want a number")
		}
		if plainFloat.MatchString(value) {
			return value, nil
		}
		return strconv.FormatFloat(f, 'f', -1, 64), nil
	case duration:
		d, err := time.ParseDuration(value)
		if err != nil {
			return "", fmt.Errorf("want a duration such as 10m")
		}
		if plainDuration.MatchString(value) {
			return value, nil
		}
		return d.String(), nil
	}
	return value, nil
}

// unfilled is what stands for a value that somebody or something else fills in.
var unfilled = regexp.MustCompile(`<[^<>]+>|\{\{.*\}\}|\$\{?[A-Za-z_(]`)

// controls reports whether a value has what YAML takes only by an escape.
func controls(value string) bool { return strings.ContainsFunc(value, unicode.IsControl) }
