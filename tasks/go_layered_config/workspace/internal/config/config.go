// Package config has the configuration.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/relay/internal/ui"
)

// Config has the values of all keys.
type Config struct {
	Batch         int
	Color         bool
	MaxAge        time.Duration
	Recipients    []string
	Spool         string
	SubjectPrefix string
	Templates     string
	Token         string
	Verbose       bool
}

// Current is the configuration of the program.
var Current = Config{
	Batch:     10,
	MaxAge:    24 * time.Hour,
	Spool:     "spool",
	Templates: "templates",
}

// Err is the error that occurred when the configuration was loaded.
var Err error

const fileName = ".relay.conf"

func init() {
	Err = load()
}

func load() error {
	if home := os.Getenv("HOME"); home != "" {
		if err := loadFile(filepath.Join(home, fileName)); err != nil {
			return err
		}
	}
	for _, key := range Keys() {
		name := "RELAY_" + strings.ToUpper(key)
		if value := os.Getenv(name); value != "" {
			if err := Set(key, value); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

func loadFile(path string) error {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for i, line := range strings.Split(string(content), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !ok {
			return fmt.Errorf("%s:%d: `=` is missing", path, i+1)
		}
		if !slices.Contains(Keys(), key) {
			ui.Warn("%s:%d: unknown key `%s`", path, i+1, key)
			continue
		}
		if err := Set(key, value); err != nil {
			return fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
	}
	return nil
}

// Keys returns all keys in order.
func Keys() []string {
	return []string{"batch", "color", "max_age", "recipients", "spool", "subject_prefix", "templates", "token", "verbose"}
}

// Set changes the value of a key.
func Set(key, value string) error {
	bad := fmt.Errorf("%s: bad value `%s`", key, value)
	var err error
	switch key {
	case "batch":
		n, convErr := strconv.Atoi(value)
		if convErr != nil || n < 1 {
			return bad
		}
		Current.Batch = n
	case "color":
		Current.Color, err = strconv.ParseBool(value)
	case "max_age":
		d, convErr := time.ParseDuration(value)
		if convErr != nil || d < 0 {
			return bad
		}
		Current.MaxAge = d
	case "recipients":
		Current.Recipients = list(value)
	case "spool":
		Current.Spool = value
	case "subject_prefix":
		Current.SubjectPrefix = value
	case "templates":
		Current.Templates = value
	case "token":
		Current.Token = value
	case "verbose":
		Current.Verbose, err = strconv.ParseBool(value)
	default:
		return fmt.Errorf("unknown key `%s`", key)
	}
	if err != nil {
		return bad
	}
	ui.Color, ui.Verbose = Current.Color, Current.Verbose
	return nil
}

// list splits a list at commas, without empty elements.
func list(value string) []string {
	var all []string
	for _, element := range strings.Split(value, ",") {
		if element = strings.TrimSpace(element); element != "" {
			all = append(all, element)
		}
	}
	return all
}

// Text returns the value of a key as users see it. Secrets are masked.
func Text(key string) string {
	switch key {
	case "batch":
		return strconv.Itoa(Current.Batch)
	case "color":
		return strconv.FormatBool(Current.Color)
	case "max_age":
		return Current.MaxAge.String()
	case "recipients":
		return strings.Join(Current.Recipients, ", ")
	case "spool":
		return Current.Spool
	case "subject_prefix":
		return Current.SubjectPrefix
	case "templates":
		return Current.Templates
	case "token":
		if Current.Token == "" {
			return ""
		}
		return "****"
	default:
		return strconv.FormatBool(Current.Verbose)
	}
}

// Path returns a path for opening files: `~/` stands for the home folder.
func Path(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(os.Getenv("HOME"), rest)
	}
	return path
}
