// Package manifest reads lists of paths.
package manifest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// MaxPath is the maximum number of bytes in a path.
const MaxPath = 4096

// ErrTooLong reports a line with more than MaxPath bytes.
var ErrTooLong = errors.New("path is too long")

// Entry is a path of a manifest.
type Entry struct {
	Path string
	Line int // starts at 1
}

// Reader reads the entries of a manifest one after the other.
type Reader struct {
	lines *bufio.Reader
	line  int
}

// NewReader returns a reader of the manifest in r.
func NewReader(r io.Reader) *Reader {
	return &Reader{lines: bufio.NewReaderSize(r, MaxPath+2)}
}

// Next returns the next entry, and io.EOF after the last one.
func (r *Reader) Next() (Entry, error) {
	for {
		text, err := r.lines.ReadSlice('\n')
		if len(text) == 0 && err != nil {
			return Entry{}, err
		}
		r.line++
		if errors.Is(err, bufio.ErrBufferFull) {
			return Entry{}, fmt.Errorf("line %d: %w", r.line, ErrTooLong)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return Entry{}, err
		}
		path := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
		if strings.TrimSpace(path) == "" || strings.HasPrefix(path, "#") {
			continue
		}
		if len(path) > MaxPath {
			return Entry{}, fmt.Errorf("line %d: %w", r.line, ErrTooLong)
		}
		return Entry{Path: path, Line: r.line}, nil
	}
}

// ReadAll returns all entries of the manifest in r.
func ReadAll(r io.Reader) ([]Entry, error) {
	reader := NewReader(r)
	var entries []Entry
	for {
		entry, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
}
