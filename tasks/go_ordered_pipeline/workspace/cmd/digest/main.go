// Command digest prints the digests of the files that a manifest names.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"example.com/digest/internal/hashing"
	"example.com/digest/internal/manifest"
	"example.com/digest/internal/pipeline"
)

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

type options struct {
	workers  int
	manifest string
}

func main() {
	opts, err := parse(os.Args[1:], os.Stderr)
	if err != nil {
		fmt.Fprintf(os.Stderr, "digest: %v\n", err)
		os.Exit(exitUsage)
	}
	os.Exit(run(context.Background(), opts, os.Stdin, os.Stdout, os.Stderr))
}

func parse(args []string, stderr io.Writer) (options, error) {
	var opts options
	flags := flag.NewFlagSet("digest", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.IntVar(&opts.workers, "j", 4, "number of files to read at the same time")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	if flags.NArg() > 1 {
		return opts, errors.New("at most one manifest can be given")
	}
	opts.manifest = flags.Arg(0)
	if opts.workers < 1 {
		return opts, pipeline.ErrWorkers
	}
	return opts, nil
}

func run(ctx context.Context, opts options, stdin io.Reader, stdout, stderr io.Writer) int {
	input := stdin
	if opts.manifest != "" && opts.manifest != "-" {
		file, err := os.Open(opts.manifest)
		if err != nil {
			fmt.Fprintf(stderr, "digest: %v\n", err)
			return exitFailed
		}
		defer file.Close()
		input = file
	}
	entries, err := manifest.ReadAll(input)
	if err != nil {
		fmt.Fprintf(stderr, "digest: manifest: %v\n", err)
		return exitFailed
	}
	digests, err := pipeline.Map(ctx, opts.workers, entries, digest)
	if err != nil {
		fmt.Fprintf(stderr, "digest: %v\n", err)
		return exitFailed
	}
	out := bufio.NewWriter(stdout)
	written := 0
	for i, entry := range entries {
		if digests[i] == "" {
			continue
		}
		fmt.Fprintf(out, "%s  %s\n", digests[i], entry.Path)
		written++
	}
	fmt.Fprintf(out, "# files %d, skipped %d, failed 0\n", written, len(entries)-written)
	if err := out.Flush(); err != nil {
		fmt.Fprintf(stderr, "digest: %v\n", err)
		return exitFailed
	}
	return exitOK
}

// digest returns the digest of an entry's file, and an empty text for a folder.
func digest(ctx context.Context, entry manifest.Entry) (string, error) {
	text, err := hashing.File(ctx, entry.Path)
	if errors.Is(err, hashing.ErrFolder) {
		return "", nil
	}
	return text, err
}
