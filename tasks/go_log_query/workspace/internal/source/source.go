// Package source reads the lines of files.
package source

import (
	"bufio"
	"io"
	"os"
	"strings"
)

// StandardInput is the name of the standard input.
const StandardInput = "-"

// Lines calls each with the lines of a file and their numbers, which start at 1.
func Lines(name string, stdin io.Reader, each func(number int, line string) error) error {
	input := stdin
	if name != StandardInput {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		input = file
	}
	lines := bufio.NewScanner(input)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSuffix(lines.Text(), "\r")
		if err := each(number, line); err != nil {
			return err
		}
	}
	return lines.Err()
}
