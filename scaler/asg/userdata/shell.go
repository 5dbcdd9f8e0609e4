package userdata

import (
	"errors"
	"fmt"
	"strings"
)

// word is one word of a script, its quotes taken off and the script's own
// variables filled in.
type word struct {
	text string
	// open is true if it holds something that only a shell would know: a variable
	// from elsewhere, the output of a command. Its text has that as it was written.
	open bool
}

const (
	// longest bounds a word: a script can double a variable with each line.
	longest = 64 << 10
	// longestTogether bounds all words, of which a script can repeat the longest. It is more than any text has that
	// repeats none.
	longestTogether = 2 << 20
)

var (
	errQuote   = errors.New("a quote is not closed")
	errCommand = errors.New("a command substitution is not closed")
	errLong    = fmt.Errorf("a word is longer than %d KiB", longest>>10)
	errMuch    = fmt.Errorf("its words are longer than %d MiB together", longestTogether>>20)
)

// commands splits a script into simple commands and each of them into words. It
// knows quotes, line continuations, comments, here-documents and assignments; of
// loops, conditions and functions it sees the commands in them.
// https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html
func commands(script string) ([][]word, error) {
	s := scanner{text: script, variables: map[string]word{}}
	return s.run()
}

// split gives the words of a line on which blanks and quotes alone mean something.
func split(line string) ([]word, error) {
	s := scanner{text: line, plain: true}
	var words []word
	for {
		s.at = len(line) - len(strings.TrimLeft(line[s.at:], " \t\n"))
		if s.at == len(line) {
			return words, nil
		}
		w, err := s.word()
		if err != nil {
			return nil, err
		}
		words = append(words, w)
	}
}

// scanner walks through a script once, and does not recurse: a parser of the whole
// language goes as deep as a script nests, and a kilobyte of gzip can nest deep enough
// to exhaust the stack, which ends the program.
type scanner struct {
	text      string
	at        int
	plain     bool // no operators
	variables map[string]word
	found     [][]word
	current   []word
	heredocs  []string // the ends of here-documents that begin after this line
	size      int      // of all words so far
}

func (s *scanner) run() ([][]word, error) {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case ' ', '\t':
			s.at++
		case '\n':
			s.at++
			s.end()
			s.skipHeredocs()
		case ';', '&', '|', '(', ')':
			s.at++
			s.end()
		case '#':
			s.skipLine()
		case '<':
			s.redirect()
		case '>':
			s.at++
		default:
			w, err := s.word()
			if err != nil {
				return nil, err
			}
			s.current = append(s.current, w)
		}
	}
	s.end()
	return s.found, nil
}

// end closes a command. One that only assigns is kept as such.
func (s *scanner) end() {
	words := s.current
	s.current = nil
	if len(words) > 0 && (words[0].text == "export" || words[0].text == "local") {
		words = words[1:]
	}
	if len(words) == 0 {
		return
	}
	for _, w := range words {
		name, value, ok := strings.Cut(w.text, "=")
		if !ok || !isName(name) {
			s.found = append(s.found, words)
			return
		}
		s.variables[name] = word{value, w.open}
	}
}

func (s *scanner) skipLine() {
	if n := strings.IndexByte(s.text[s.at:], '\n'); n >= 0 {
		s.at += n
		return
	}
	s.at = len(s.text)
}

// redirect reads what begins with <. The text of a here-document is no command.
func (s *scanner) redirect() {
	rest := s.text[s.at:]
	if !strings.HasPrefix(rest, "<<") || strings.HasPrefix(rest, "<<<") {
		s.at += len(rest) - len(strings.TrimLeft(rest, "<"))
		return
	}
	s.at += 2
	rest = strings.TrimLeft(s.text[s.at:], "- \t")
	s.at = len(s.text) - len(rest)
	n := strings.IndexAny(rest, " \t\n;&|<>()")
	if n < 0 {
		n = len(rest)
	}
	s.at += n
	if end := strings.Trim(rest[:n], `'"\`); end != "" {
		s.heredocs = append(s.heredocs, end)
	}
}

func (s *scanner) skipHeredocs() {
	for _, end := range s.heredocs {
		for s.at < len(s.text) {
			line := firstLine(s.text[s.at:])
			s.skipLine()
			s.at = min(s.at+1, len(s.text))
			if strings.TrimLeft(line, "\t") == end {
				break
			}
		}
	}
	s.heredocs = nil
}

// word reads one word, from a character that is no blank and no operator.
func (s *scanner) word() (word, error) {
	ends := " \t\n;&|()<>"
	if s.plain {
		ends = " \t\n"
	}
	var out strings.Builder
	open := false
	for s.at < len(s.text) {
		c := s.text[s.at]
		if strings.IndexByte(ends, c) >= 0 {
			break
		}
		piece, err := s.piece(c)
		if err != nil {
			return word{}, err
		}
		out.WriteString(piece.text)
		open = open || piece.open
		if out.Len() > longest {
			return word{}, errLong
		}
	}
	if s.size += out.Len(); s.size > longestTogether {
		return word{}, errMuch
	}
	return word{out.String(), open}, nil
}

// piece reads a part of a word that is quoted in one way.
func (s *scanner) piece(c byte) (word, error) {
	switch c {
	case '\'':
		n := strings.IndexByte(s.text[s.at+1:], '\'')
		if n < 0 {
			return word{}, errQuote
		}
		text := s.text[s.at+1 : s.at+1+n]
		s.at += n + 2
		return word{text: text}, nil
	case '"':
		s.at++
		return s.quoted()
	case '\\':
		text := s.text[s.at+1 : min(s.at+2, len(s.text))]
		s.at = min(s.at+2, len(s.text))
		if text == "\n" {
			text = "" // the line goes on
		}
		return word{text: text}, nil
	case '$', '`':
		return s.expand()
	}
	s.at++
	return word{text: string([]byte{c})}, nil
}

// quoted reads up to the closing double quote.
func (s *scanner) quoted() (word, error) {
	var out strings.Builder
	open := false
	for s.at < len(s.text) {
		if out.Len() > longest {
			return word{}, errLong
		}
		switch c := s.text[s.at]; c {
		case '"':
			s.at++
			return word{out.String(), open}, nil
		case '\\':
			next := s.text[s.at+1 : min(s.at+2, len(s.text))]
			s.at += 1 + len(next)
			switch next {
			case "\n":
			case "$", "`", `"`, `\`:
				out.WriteString(next)
			default:
				out.WriteString(`\` + next)
			}
		case '$', '`':
			w, err := s.expand()
			if err != nil {
				return word{}, err
			}
			out.WriteString(w.text)
			open = open || w.open
		default:
			out.WriteByte(c)
			s.at++
		}
	}
	return word{}, errQuote
}

// expand reads a variable or the substitution of a command's output.
func (s *scanner) expand() (word, error) {
	rest := s.text[s.at:]
	switch {
	case rest[0] == '`':
		n := strings.IndexByte(rest[1:], '`')
		if n < 0 {
			return word{}, errCommand
		}
		s.at += n + 2
		return word{"$(" + rest[1:n+1] + ")", true}, nil
	case strings.HasPrefix(rest, "$("):
		n := closing(rest[1:])
		if n < 0 {
			return word{}, errCommand
		}
		s.at += n + 2
		return word{rest[:n+2], true}, nil
	}
	name, length := variable(rest)
	s.at += length
	if name == "" {
		return word{rest[:length], length > 1}, nil
	}
	if known, ok := s.variables[name]; ok {
		return known, nil
	}
	return word{rest[:length], true}, nil
}

// variable reads $name or ${name} and how long that is; no name is a dollar sign
// by itself, or an expansion that is more than a name.
func variable(text string) (name string, length int) {
	if inner, ok := strings.CutPrefix(text, "${"); ok {
		name, _, closed := strings.Cut(inner, "}")
		if !closed {
			return "", len(text)
		}
		length = len("${") + len(name) + 1
		if !isName(name) {
			return "", length
		}
		return name, length
	}
	n := 1
	for n < len(text) && isNameByte(text[n]) {
		n++
	}
	return text[1:n], n
}

func isName(text string) bool {
	for i := range len(text) {
		if !isNameByte(text[i]) {
			return false
		}
	}
	return text != "" && (text[0] < '0' || text[0] > '9')
}

func isNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// closing finds the parenthesis that closes the one at the beginning, beyond
// those in quotes; -1 if there is none.
func closing(text string) int {
	depth, quote := 0, byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
