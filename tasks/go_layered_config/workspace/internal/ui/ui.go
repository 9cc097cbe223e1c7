// Package ui prints what users see.
package ui

import (
	"fmt"
	"io"
	"os"
)

// Out and Err are where output and messages go.
var (
	Out io.Writer = os.Stdout
	Err io.Writer = os.Stderr
)

// Color and Verbose are set from the configuration.
var (
	Color   bool
	Verbose bool
)

var warnings int

const (
	green = "\x1b[32m"
	plain = "\x1b[0m"
)

// Printf prints output.
func Printf(format string, args ...any) {
	fmt.Fprintf(Out, format, args...)
}

// Success prints a line about something that was done.
func Success(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if Color {
		text = green + text + plain
	}
	fmt.Fprintln(Out, text)
}

// Debug prints a message if the configuration is verbose.
func Debug(format string, args ...any) {
	if Verbose {
		fmt.Fprintf(Err, "relay: "+format+"\n", args...)
	}
}

// Warn prints and counts a message about something that isn't right.
func Warn(format string, args ...any) {
	warnings++
	fmt.Fprintf(Err, "relay: warning: "+format+"\n", args...)
}

// Fail prints a message about an error.
func Fail(err error) {
	fmt.Fprintf(Err, "relay: %v\n", err)
}

// Finish prints the number of warnings, if there were any.
func Finish() {
	switch {
	case warnings == 1:
		fmt.Fprintln(Err, "relay: 1 warning")
	case warnings > 1:
		fmt.Fprintf(Err, "relay: %d warnings\n", warnings)
	}
}
