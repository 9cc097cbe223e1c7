// Package journal stores requests with their answers in a file.
package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"example.com/bookd/internal/booking"
)

// lineMax is the maximum number of bytes of a line.
const lineMax = 1 << 20

// ErrDiffers reports a request whose answer isn't the one in the journal.
var ErrDiffers = errors.New("answer differs")

type line struct {
	Request booking.Request `json:"request"`
	Answer  json.RawMessage `json:"answer"`
}

// Journal is a file of requests and answers.
type Journal struct {
	file *os.File
}

// Open opens a journal, which is made if it doesn't exist, and passes its requests to do.
func Open(path string, do func(booking.Request) booking.Answer) (*Journal, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := replay(file, do); err != nil {
		file.Close()
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekEnd); err != nil {
		file.Close()
		return nil, err
	}
	return &Journal{file}, nil
}

func replay(file io.Reader, do func(booking.Request) booking.Answer) error {
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, lineMax)
	for number := 1; lines.Scan(); number++ {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return fmt.Errorf("journal line %d: %w", number, err)
		}
		answer, err := json.Marshal(do(l.Request))
		if err != nil {
			return err
		}
		if !bytes.Equal(answer, l.Answer) {
			return fmt.Errorf("journal line %d: %w", number, ErrDiffers)
		}
	}
	return lines.Err()
}

// Append adds a request with its answer.
func (j *Journal) Append(request booking.Request, answer []byte) error {
	text, err := json.Marshal(line{request, answer})
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(text, '\n'))
	return err
}

// Close closes the file.
func (j *Journal) Close() error {
	return j.file.Close()
}
