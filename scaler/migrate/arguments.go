package migrate

import (
	"fmt"
	"path"
	"strings"

	"sigs.k8s.io/yaml"
)

// Argument is one flag as it was given. Without a name it is a word that is no flag.
type Argument struct {
	Of    Program `json:"of"`
	Name  string  `json:"flag,omitempty"`
	Value string  `json:"value,omitempty"`
	// Bare: it was given without a value.
	Bare bool `json:"-"`
	// Where it stands, for people.
	Where string `json:"where,omitempty"`
	// Unset are variables in the value that no literal gives.
	Unset string `json:"-"`
}

// word is a part of a command line.
type word struct{ text, where string }

// mostArguments is how many are read. Ten thousand groups are more than an account may have.
const mostArguments = 10_000

// readWords reads the words of a text that is no YAML of objects or values; is reports whether it
// is that.
func readWords(of Program, text, file string) (words []word, is bool, err error) {
	var list []string
	if strings.HasPrefix(strings.TrimSpace(text), "[") && yaml.Unmarshal([]byte(text), &list) == nil {
		if len(list) > mostArguments {
			return nil, true, tooMany(file)
		}
		words, err = commandOf(list, file, of.image())
		return words, true, err
	}
	if !looksLikeArguments(text) {
		return nil, false, nil
	}
	words, err = splitWords(text, file)
	return words, true, err
}

func tooMany(where string) error {
	return fmt.Errorf("%s: more than %d arguments: give one command line", where, mostArguments)
}

// splitWords splits a text as a shell would: a command line, or one argument a line, or lines out
// of a list in YAML, JSON or HCL. Nothing is substituted.
func splitWords(text, file string) ([]word, error) {
	s := splitter{text: text, file: file, line: 1}
	for s.next() {
		if len(s.words) > mostArguments {
			return nil, tooMany(s.where())
		}
	}
	return s.words, s.err
}

type splitter struct {
	text, file string
	at, line   int
	words      []word
	err        error
}

func (s *splitter) where() string { return fmt.Sprintf("%s line %d", s.file, s.line) }

// next takes one word, and reports whether there was one.
func (s *splitter) next() bool {
	s.skip()
	if s.at >= len(s.text) {
		return false
	}
	w := word{where: s.where()}
	quoted := false
	for s.at < len(s.text) {
		c := s.text[s.at]
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			s.keep(w, quoted)
			return true
		case c == '\'' || c == '"':
			inner, ok := s.quoted(c)
			if !ok {
				s.err = fmt.Errorf("%s: the quote %c is not closed: close it, or put a backslash before it", w.where, c)
				return false
			}
			w.text += inner
			quoted = true
			if s.at < len(s.text) && s.text[s.at] == ',' { // between members of a list
				s.at++
				s.keep(w, quoted)
				return true
			}
		case c == '\\' && s.at+1 < len(s.text):
			if s.text[s.at+1] == '\n' {
				s.line++
			} else {
				w.text += s.text[s.at+1 : s.at+2]
			}
			s.at += 2
		default:
			w.text += s.text[s.at : s.at+1]
			s.at++
		}
	}
	s.keep(w, quoted)
	return true
}

// keep drops what makes a list and is no member.
func (s *splitter) keep(w word, quoted bool) {
	if !quoted && (w.text == "" || w.text == "-" || w.text == "[" || w.text == "]" || w.text == ",") {
		return
	}
	s.words = append(s.words, w)
}

// skip passes blanks, ends of lines and comments.
func (s *splitter) skip() {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '\n':
			s.line++
			s.at++
		case c == ' ' || c == '\t' || c == '\r':
			s.at++
		case c == '#':
			end := strings.IndexByte(s.text[s.at:], '\n')
			if end < 0 {
				end = len(s.text) - s.at
			}
			s.at += end
		default:
			return
		}
	}
}

// quoted takes what stands between quotes, and reports whether they are closed.
func (s *splitter) quoted(quote byte) (string, bool) {
	var inner strings.Builder
	for s.at++; s.at < len(s.text); s.at++ {
		c := s.text[s.at]
		switch {
		case c == quote:
			s.at++
			return inner.String(), true
		case c == '\\' && quote == '"' && s.at+1 < len(s.text):
			s.at++
			inner.WriteByte(s.text[s.at])
		default:
			if c == '\n' {
				s.line++
			}
			inner.WriteByte(c)
		}
	}
	return "", false
}

// parse makes flags of words. A flag that takes a value and stands without = has the next word
// for it; of one that is not known, the next word if that is no flag.
func parse(of Program, words []word) []Argument {
	var all []Argument
	if len(words) > 0 && !strings.HasPrefix(words[0].text, "-") && !strings.Contains(words[0].text, "--") && !strings.Contains(words[0].text, "=") {
		words = words[1:] // the program
	}
	for i := 0; i < len(words); i++ {
		w := words[i]
		text, isFlag := undash(w.text)
		if !isFlag {
			all = append(all, Argument{Of: of, Value: w.text, Where: w.where})
			continue
		}
		a := Argument{Of: of, Where: w.where}
		var valued bool
		a.Name, a.Value, valued = strings.Cut(text, "=")
		row, known := Lookup(of, a.Name)
		if valued || known && row.Kind == boolean {
			a.Bare = !valued
		} else if i+1 < len(words) && (known || !looksLikeFlag(words[i+1].text)) {
			i++
			a.Value = words[i].text
		} else {
			a.Bare = true
		}
		all = append(all, a)
	}
	return all
}

// undash takes one dash or two off a flag, as klog has it.
func undash(text string) (string, bool) {
	rest, ok := strings.CutPrefix(text, "-")
	if !ok {
		return "", false
	}
	rest = strings.TrimPrefix(rest, "-")
	return rest, rest != "" && rest[0] != '-' && rest[0] != '='
}

func looksLikeFlag(text string) bool {
	_, is := undash(text)
	return is
}

// TwoDashes gives flags of Cluster Autoscaler a second dash where they have one: klog took both,
// and so do manifests.
func TwoDashes(args []string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		out[i] = arg
		name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		if _, known := Lookup(Autoscaler, name); known && len(name) > 1 && arg[0] == '-' && arg[1] != '-' {
			out[i] = "-" + arg
		}
	}
	return out
}

// commandOf are the words of a container's command and arguments. Of a shell that is given a
// script it is the line of the program in it.
func commandOf(command []string, where, program string) ([]word, error) {
	if len(command) > 2 && strings.HasSuffix(path.Base(command[0]), "sh") && command[1] == "-c" {
		words, err := splitWords(command[2], where)
		for i, w := range words {
			if strings.Contains(path.Base(w.text), program) {
				return words[i:], err
			}
		}
		return words, err
	}
	words := make([]word, 0, len(command))
	for i, text := range command {
		words = append(words, word{text, fmt.Sprintf("%s, argument %d", where, i)})
	}
	return words, nil
}
