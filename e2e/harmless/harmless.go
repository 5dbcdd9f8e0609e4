// Package harmless holds pages of HTML that programs of ours write to what such a page may be: it
// needs nothing else, and runs nothing.
package harmless

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// elements are what a page is made of. None of them runs, and none is fetched.
var elements = "html head meta title style body h1 h2 h3 p b code div table tr th td span svg g a line rect text polyline polygon path circle details summary"

// Read checks that a page is well-formed, consists of elements that are harmless, refers to itself
// alone and has each place that it refers to; and returns how often it has each element, and its
// text.
func Read(page string) (count map[string]int, text string, err error) {
	decoder := xml.NewDecoder(strings.NewReader(page))
	if !strings.HasPrefix(page, "<!DOCTYPE html>\n") {
		return nil, "", errors.New("there is no doctype")
	}
	count, known := map[string]int{}, map[string]bool{}
	for _, name := range strings.Fields(elements) {
		known[name] = true
	}
	ids, links := map[string]bool{}, map[string]bool{}
	var words strings.Builder
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, "", err
		}
		switch token := token.(type) {
		case xml.CharData:
			words.Write(token)
		case xml.StartElement:
			count[token.Name.Local]++
			if !known[token.Name.Local] {
				return nil, "", fmt.Errorf("element %s", token.Name.Local)
			}
			for _, a := range token.Attr {
				switch name := a.Name.Local; {
				case name == "id":
					ids[a.Value] = true
				case name == "href" && strings.HasPrefix(a.Value, "#"):
					links[a.Value[1:]] = true
				case name == "href" || name == "src" || name == "style" || strings.HasPrefix(name, "on"):
					return nil, "", fmt.Errorf("attribute %s=%q", name, a.Value)
				}
			}
		}
	}
	for link := range links {
		if !ids[link] {
			return nil, "", fmt.Errorf("a link to %s, which is nowhere", link)
		}
	}
	if at := regexp.MustCompile(`(?i)https?:|url\(|@import`).FindString(page); at != "" {
		return nil, "", fmt.Errorf("it refers to something else: %s", at)
	}
	return count, words.String(), nil
}
