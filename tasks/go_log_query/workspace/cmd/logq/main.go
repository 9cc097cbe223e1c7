// Command logq reads logs.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"example.com/logq/internal/record"
	"example.com/logq/internal/source"
)

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

const usage = `usage: logq cat FILE...
       logq levels FILE...
`

// streams are the standard streams of a command.
type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

func main() {
	os.Exit(run(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

func run(args []string, std streams) int {
	if len(args) < 2 {
		fmt.Fprint(std.err, usage)
		return exitUsage
	}
	switch args[0] {
	case "cat":
		return cat(args[1:], std)
	case "levels":
		return levels(args[1:], std)
	}
	fmt.Fprint(std.err, usage)
	return exitUsage
}

// cat prints records in their normal form.
func cat(names []string, std streams) int {
	out := bufio.NewWriter(std.out)
	defer out.Flush()
	return each(names, std, func(r record.Record) {
		fmt.Fprintln(out, r)
	})
}

// levels counts records by level.
func levels(names []string, std streams) int {
	counts := map[string]int{}
	code := each(names, std, func(r record.Record) {
		level, _ := r.Get("level")
		counts[level]++
	})
	var found []string
	for level := range counts {
		found = append(found, level)
	}
	slices.Sort(found)
	for _, level := range found {
		fmt.Fprintf(std.out, "%s\t%d\n", record.Text(level), counts[level])
	}
	return code
}

// each calls do with the records of files. It reports lines that are malformed and files that can't be read.
func each(names []string, std streams, do func(record.Record)) int {
	code := exitOK
	for _, name := range names {
		err := source.Lines(name, std.in, func(number int, line string) error {
			if strings.TrimSpace(line) == "" {
				return nil
			}
			r, err := record.Parse(line)
			if err != nil {
				fmt.Fprintf(std.err, "%s:%d: %v\n", name, number, err)
				return nil
			}
			do(r)
			return nil
		})
		if err != nil {
			fmt.Fprintf(std.err, "logq: %v\n", err)
			code = exitFailed
		}
	}
	return code
}
