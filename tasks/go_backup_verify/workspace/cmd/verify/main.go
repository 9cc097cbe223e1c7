// Command verify verifies the backups of a vault.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"example.com/vault/internal/catalog"
)

const (
	exitOK    = 0
	exitUsage = 2
)

const usage = "usage: verify -vault FOLDER -list"

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("verify", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	vault := flags.String("vault", "", "folder of the vault")
	isList := flags.Bool("list", false, "print the files of all backups")
	if err := flags.Parse(args); err != nil || *vault == "" || !*isList || flags.NArg() > 0 {
		fmt.Fprintln(stderr, usage)
		return exitUsage
	}
	c, err := catalog.Read(*vault)
	if err != nil {
		fmt.Fprintf(stderr, "verify: %v\n", err)
		return exitUsage
	}
	list(stdout, c)
	return exitOK
}

func list(out io.Writer, c *catalog.Catalog) {
	for _, b := range c.Backups {
		for _, f := range b.Files {
			fmt.Fprintf(out, "%s\t%d\t%s\n", b.ID, f.Size, f.Path)
		}
	}
}
