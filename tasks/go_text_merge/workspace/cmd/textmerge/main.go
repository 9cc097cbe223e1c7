// Command textmerge compares texts line by line.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"

	"example.com/textmerge/internal/lines"
	"example.com/textmerge/internal/match"
)

const (
	exitSame    = 0
	exitDiffers = 1
	exitTrouble = 2
)

const usage = "usage: textmerge diff [-b] OLD NEW"

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "diff" {
		return diff(args[1:], stdout, stderr)
	}
	fmt.Fprintln(stderr, usage)
	return exitTrouble
}

// newFlags returns an empty set of options, which prints nothing itself.
func newFlags(name string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	return flags
}

func diff(args []string, stdout, stderr io.Writer) int {
	flags := newFlags("diff")
	ignoreSpace := flags.Bool("b", false, "")
	if err := flags.Parse(args); err != nil || flags.NArg() != 2 {
		fmt.Fprintln(stderr, usage)
		return exitTrouble
	}
	texts, err := readAll(flags.Args())
	if err != nil {
		fmt.Fprintf(stderr, "textmerge: %v\n", err)
		return exitTrouble
	}
	out := bufio.NewWriter(stdout)
	code := printDiff(out, texts[0], texts[1], *ignoreSpace)
	if err := out.Flush(); err != nil {
		fmt.Fprintf(stderr, "textmerge: %v\n", err)
		return exitTrouble
	}
	return code
}

func readAll(paths []string) ([][]lines.Line, error) {
	var texts [][]lines.Line
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		text, err := lines.Split(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		texts = append(texts, text)
	}
	return texts, nil
}

func printDiff(out *bufio.Writer, a, b []lines.Line, ignoreSpace bool) int {
	pairs := match.Match(lines.Keys(a, ignoreSpace), lines.Keys(b, ignoreSpace))
	pairs = append(pairs, match.Pair{A: len(a), B: len(b)})
	code := exitSame
	i, j := 0, 0
	for _, p := range pairs {
		if p.A > i || p.B > j {
			code = exitDiffers
			fmt.Fprintf(out, "@@ -%s +%s @@\n", span(i, p.A), span(j, p.B))
			printLines(out, '-', a[i:p.A])
			printLines(out, '+', b[j:p.B])
		}
		i, j = p.A+1, p.B+1
	}
	return code
}

func span(from, to int) string {
	if from == to {
		return fmt.Sprintf("%d,0", from)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func printLines(out *bufio.Writer, mark byte, some []lines.Line) {
	for _, l := range some {
		fmt.Fprintf(out, "%c%s", mark, l)
		if l.End == "" {
			out.WriteString("\n\\ no line end\n")
		}
	}
}
