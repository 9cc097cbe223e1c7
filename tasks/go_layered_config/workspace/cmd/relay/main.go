// Command relay renders notifications and puts them into a spool folder.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"example.com/relay/internal/clock"
	"example.com/relay/internal/config"
	"example.com/relay/internal/queue"
	"example.com/relay/internal/render"
	"example.com/relay/internal/ui"
)

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

const usage = `usage: relay [FLAG...] config
       relay [FLAG...] send NAME [KEY=VALUE...] [-]
       relay [FLAG...] list
       relay [FLAG...] expire
`

var errUsage = errors.New("usage")

var (
	spool   = flag.String("spool", "", "spool folder")
	to      = flag.String("to", "", "recipients")
	color   = flag.Bool("color", false, "colored output")
	verbose = flag.Bool("v", false, "more messages")
)

func main() {
	flag.CommandLine.Init("relay", flag.ContinueOnError)
	flag.CommandLine.SetOutput(io.Discard)
	code := run()
	ui.Finish()
	os.Exit(code)
}

func run() int {
	if err := flag.CommandLine.Parse(os.Args[1:]); err != nil || flag.NArg() == 0 {
		fmt.Fprint(ui.Err, usage)
		return exitUsage
	}
	if config.Err != nil {
		ui.Fail(config.Err)
		return exitUsage
	}
	applyFlags()
	err := command(flag.Arg(0), flag.Args()[1:])
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprint(ui.Err, usage)
		return exitUsage
	case err != nil:
		ui.Fail(err)
		return exitFailed
	}
	return exitOK
}

func applyFlags() {
	flag.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "spool":
			config.Set("spool", *spool)
		case "to":
			config.Set("recipients", *to)
		case "color":
			config.Set("color", f.Value.String())
		case "v":
			config.Set("verbose", f.Value.String())
		}
	})
}

func command(name string, args []string) error {
	switch {
	case name == "send" && len(args) > 0:
		return send(args[0], args[1:])
	case len(args) > 0:
		return errUsage
	case name == "config":
		for _, key := range config.Keys() {
			ui.Printf("%s = %s\n", key, config.Text(key))
		}
		return nil
	case name == "list":
		return list()
	case name == "expire":
		removed, err := queue.Expire()
		if err != nil {
			return err
		}
		ui.Success("expired %d", removed)
		return nil
	}
	return errUsage
}

func send(name string, args []string) error {
	values := map[string]string{"now": clock.Now().UTC().Format(time.DateOnly)}
	extra := ""
	for _, arg := range args {
		if arg == "-" {
			content, err := io.ReadAll(os.Stdin)
			if err != nil {
				return err
			}
			extra += string(content)
			continue
		}
		key, value, ok := strings.Cut(arg, "=")
		if !ok {
			return errUsage
		}
		values[key] = value
	}
	if len(config.Current.Recipients) == 0 {
		return errors.New("no recipients")
	}
	subject, body, err := render.Message(name, values)
	if err != nil {
		return err
	}
	number, err := queue.Add(subject, body+extra)
	if err != nil {
		return err
	}
	ui.Success("queued %06d for %s", number, strings.Join(config.Current.Recipients, ", "))
	return nil
}

func list() error {
	all, err := queue.List()
	if err != nil {
		return err
	}
	for _, m := range all {
		ui.Printf("%06d  %s  %s\n", m.Number, clock.Now().Sub(m.Queued).Truncate(time.Minute), m.Subject)
	}
	return nil
}
