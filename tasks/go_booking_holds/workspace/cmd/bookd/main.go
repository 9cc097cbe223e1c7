// Command bookd keeps reservations of shared resources.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"

	"example.com/bookd/internal/booking"
	"example.com/bookd/internal/journal"
	"example.com/bookd/internal/service"
)

const requestMax = 1 << 20

func main() {
	path := flag.String("journal", "", "file that keeps requests and answers")
	flag.Parse()
	if err := run(*path, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "bookd: %v\n", err)
		os.Exit(1)
	}
}

func run(path string, input io.Reader, output io.Writer) error {
	s := service.New()
	var kept *journal.Journal
	if path != "" {
		var err error
		if kept, err = journal.Open(path, s.Do); err != nil {
			return err
		}
		defer kept.Close()
	}
	lines := bufio.NewScanner(input)
	lines.Buffer(nil, requestMax)
	for lines.Scan() {
		request, answer := parse(lines.Bytes())
		if answer.OK {
			answer = s.Do(request)
		}
		text, err := json.Marshal(answer)
		if err != nil {
			return err
		}
		// The answer is given when it is in the journal.
		isChange := request.Op.IsOfClient() || request.Op == booking.Define
		if kept != nil && isChange && answer.IsKept() {
			if err := kept.Append(request, text); err != nil {
				return err
			}
		}
		if _, err := output.Write(append(text, '\n')); err != nil {
			return err
		}
	}
	return lines.Err()
}

// parse returns a request, and an answer that isn't OK if it can't be read.
func parse(text []byte) (booking.Request, booking.Answer) {
	var request booking.Request
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&request); err != nil {
		return booking.Request{}, booking.Refused(booking.BadRequest)
	}
	return request, booking.Answer{OK: true}
}
