// Package lines splits texts into lines.
package lines

import (
	"bytes"
	"errors"
	"strings"
)

// ErrBinary reports a text with NUL bytes.
var ErrBinary = errors.New("file is binary")

// Line is a line of a text.
type Line struct {
	Text string // without the line end
	End  string // "\n", "\r\n", or "" for the last line of a text that has no line end there
}

// String returns the line as it is in the text.
func (l Line) String() string {
	return l.Text + l.End
}

// Split splits a text into lines.
func Split(text []byte) ([]Line, error) {
	if bytes.IndexByte(text, 0) >= 0 {
		return nil, ErrBinary
	}
	var found []Line
	for piece := range strings.Lines(string(text)) {
		line := Line{Text: piece}
		for _, end := range []string{"\r\n", "\n"} {
			if rest, ok := strings.CutSuffix(piece, end); ok {
				line = Line{rest, end}
				break
			}
		}
		found = append(found, line)
	}
	return found, nil
}

// Key returns a text that is the same for equal lines. If white space is ignored, each sequence of spaces and tabs counts as one
// space, and at the end of a line as nothing.
func (l Line) Key(ignoreSpace bool) string {
	if !ignoreSpace {
		return l.Text
	}
	var b strings.Builder
	text := strings.TrimRight(l.Text, " \t")
	isSpace := false
	for i := range len(text) {
		c := text[i]
		if c == ' ' || c == '\t' {
			if !isSpace {
				b.WriteByte(' ')
			}
			isSpace = true
			continue
		}
		isSpace = false
		b.WriteByte(c)
	}
	return b.String()
}

// Keys returns the keys of lines.
func Keys(all []Line, ignoreSpace bool) []string {
	keys := make([]string, len(all))
	for i, l := range all {
		keys[i] = l.Key(ignoreSpace)
	}
	return keys
}
