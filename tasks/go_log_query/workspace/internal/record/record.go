// Package record parses log records.
package record

import (
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Errors of malformed lines.
var (
	ErrTime      = errors.New("bad time")
	ErrName      = errors.New("bad field name")
	ErrValue     = errors.New("bad value")
	ErrDuplicate = errors.New("duplicate field")
)

// TimeField is the name of the record's time, which no other field may have.
const TimeField = "time"

// Field is a named value.
type Field struct {
	Name  string
	Value string
}

// Record is a line of a log.
type Record struct {
	Time   time.Time
	Fields []Field // in the order of the line
}

// Get returns the value of a field.
func (r Record) Get(name string) (string, bool) {
	for _, f := range r.Fields {
		if f.Name == name {
			return f.Value, true
		}
	}
	return "", false
}

// Parse parses a line without its line end.
func Parse(line string) (Record, error) {
	text, rest, _ := strings.Cut(line, " ")
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return Record{}, ErrTime
	}
	r := Record{Time: at}
	for {
		rest = strings.TrimLeft(rest, " ")
		if rest == "" {
			return r, nil
		}
		name, after, ok := strings.Cut(rest, "=")
		if !ok || !IsName(name) {
			return Record{}, ErrName
		}
		value, left, err := parseValue(after)
		if err != nil {
			return Record{}, err
		}
		if _, exists := r.Get(name); exists || name == TimeField {
			return Record{}, ErrDuplicate
		}
		r.Fields = append(r.Fields, Field{name, value})
		rest = left
	}
}

func parseValue(text string) (value, rest string, err error) {
	if strings.HasPrefix(text, `"`) {
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			return "", "", ErrValue
		}
		rest = text[len(quoted):]
		if rest != "" && rest[0] != ' ' {
			return "", "", ErrValue
		}
		value, err = strconv.Unquote(quoted)
		if err != nil {
			return "", "", ErrValue
		}
		return value, rest, nil
	}
	value, rest, _ = strings.Cut(text, " ")
	if !isBare(value) {
		return "", "", ErrValue
	}
	return value, rest, nil
}

func isBare(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool {
		return c == '"' || unicode.IsSpace(c) || unicode.IsControl(c)
	})
}

// IsName returns true for the name of a field.
func IsName(text string) bool {
	for i, c := range []byte(text) {
		isLetter := c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_'
		isOther := c >= '0' && c <= '9' || c == '.' || c == '-'
		if !isLetter && (i == 0 || !isOther) {
			return false
		}
	}
	return text != ""
}

// Text returns a value as it is written in a record, bare if possible.
func Text(value string) string {
	if value != "" && isBare(value) {
		return value
	}
	return strconv.Quote(value)
}

// String returns the record in its normal form: the time in UTC, and one space before each field.
func (r Record) String() string {
	var b strings.Builder
	b.WriteString(r.Time.UTC().Format(time.RFC3339Nano))
	for _, f := range r.Fields {
		b.WriteString(" " + f.Name + "=" + Text(f.Value))
	}
	return b.String()
}
