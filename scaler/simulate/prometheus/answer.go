package prometheus

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// result is one of those of an answer: with all points in a matrix, with one in a vector.
type result struct {
	Metric map[string]string `json:"metric"`
	Value  point             `json:"value"`
	Values []point           `json:"values"`
}

// point is a value at a moment, in seconds since 1970.
type point struct{ at, value float64 }

func (p *point) UnmarshalJSON(text []byte) error {
	at, value, _ := strings.Cut(strings.Trim(string(text), "[]"), ",")
	var err1, err2 error
	p.at, err1 = strconv.ParseFloat(strings.TrimSpace(at), 64)
	p.value, err2 = strconv.ParseFloat(strings.Trim(value, ` "`), 64)
	if err1 != nil || err2 != nil {
		return fmt.Errorf("the answer has %s, want a moment with a value", shortened(string(text)))
	}
	return nil
}

var errTooLarge = fmt.Errorf("the answer has more than %d MiB", mostBytes>>20)

// bounded is a body of which no more than so many bytes are read, in all and for one result.
type bounded struct {
	io.Reader
	left, ofResult int
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.left, b.ofResult = b.left-n, b.ofResult-n
	switch {
	case b.left < 0:
		return 0, errTooLarge
	case b.ofResult < 0:
		return 0, fmt.Errorf("a series of the answer has more than %d MiB", mostSeries>>20)
	}
	return n, err
}

// readAnswer reads an answer, and gives results of a kind to take as it goes. An answer that may
// lack something is none.
func readAnswer(body io.Reader, most int, kind string, take func(result)) error {
	source := &bounded{body, most, mostSeries}
	d := json.NewDecoder(source)
	var failed, text, is string
	var warnings []string
	data := func() error {
		return inside(d, '{', func() error {
			return field(d, map[string]func() error{
				"resultType": func() error {
					if err := d.Decode(&is); err != nil || is == kind {
						return err
					}
					return fmt.Errorf("the answer is a %s, want a %s", is, kind)
				},
				"result": func() error {
					return inside(d, '[', func() error {
						source.ofResult = mostSeries
						var r result
						if err := d.Decode(&r); err != nil {
							return err
						}
						take(r)
						return nil
					})
				},
			})
		})
	}
	err := inside(d, '{', func() error {
		return field(d, map[string]func() error{
			"errorType": func() error { return d.Decode(&failed) },
			"error":     func() error { return d.Decode(&text) },
			"warnings":  func() error { return d.Decode(&warnings) },
			"data":      data,
		})
	})
	switch {
	case err != nil:
		return err
	case failed != "":
		return &refusal{http.StatusOK, failed, text}
	case len(warnings) > 0:
		return errors.New("the answer may lack something: " + shortened(strings.Join(warnings, "; ")))
	case is == "":
		return fmt.Errorf("the answer has no data, want a %s", kind)
	}
	return nil
}

// inside reads an object or a list, each part of which is read by part.
func inside(d *json.Decoder, opening json.Delim, part func() error) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	if token != opening {
		return fmt.Errorf("the answer has %v, want %v", token, opening)
	}
	for d.More() {
		if err := part(); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// field reads a field of an object; one that is not known is passed over.
func field(d *json.Decoder, known map[string]func() error) error {
	name, err := d.Token()
	if err != nil {
		return err
	}
	if read := known[fmt.Sprint(name)]; read != nil {
		return read()
	}
	var other json.RawMessage
	return d.Decode(&other)
}
