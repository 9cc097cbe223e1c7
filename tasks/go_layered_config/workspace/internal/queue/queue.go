// Package queue keeps messages in the spool folder.
package queue

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"example.com/relay/internal/clock"
	"example.com/relay/internal/config"
	"example.com/relay/internal/ui"
)

const suffix = ".msg"

// Message is a message of the spool.
type Message struct {
	Number  int
	Queued  time.Time
	Subject string
}

// next is the number of the next message, or 0 before the spool was read.
var next int

// Add stores a message and returns its number.
func Add(subject, body string) (int, error) {
	folder := config.Path(config.Current.Spool)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return 0, err
	}
	if next == 0 {
		all, err := List()
		if err != nil {
			return 0, err
		}
		next = 1
		if len(all) > 0 {
			next = all[len(all)-1].Number + 1
		}
	}
	number := next
	next++
	text := fmt.Sprintf("Date: %s\nTo: %s\nSubject: %s\n", clock.Now().UTC().Format(time.RFC3339), strings.Join(config.Current.Recipients, ", "), subject)
	if config.Current.Token != "" {
		text += "Token: " + config.Current.Token + "\n"
	}
	path := filepath.Join(folder, name(number))
	ui.Debug("writing %s", path)
	return number, os.WriteFile(path, []byte(text+"\n"+body), 0o644)
}

// List returns the messages in the order of their numbers.
func List() ([]Message, error) {
	folder := config.Path(config.Current.Spool)
	entries, err := os.ReadDir(folder)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Message
	for _, entry := range entries {
		digits, ok := strings.CutSuffix(entry.Name(), suffix)
		number, err := strconv.Atoi(digits)
		if !ok || err != nil {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		m := Message{Number: number}
		for _, line := range strings.Split(string(content), "\n") {
			if line == "" {
				break
			}
			if text, ok := strings.CutPrefix(line, "Date: "); ok {
				if m.Queued, err = time.Parse(time.RFC3339, text); err != nil {
					ui.Warn("%s: bad date", entry.Name())
				}
			}
			if text, ok := strings.CutPrefix(line, "Subject: "); ok {
				m.Subject = text
			}
		}
		all = append(all, m)
	}
	return all, nil
}

// Expire removes messages that are older than max_age, at most batch ones. It returns their number.
func Expire() (int, error) {
	all, err := List()
	if err != nil {
		return 0, err
	}
	removed := 0
	for _, m := range all {
		if removed == config.Current.Batch {
			ui.Debug("batch is full")
			break
		}
		if clock.Now().Sub(m.Queued) <= config.Current.MaxAge {
			continue
		}
		if err := os.Remove(filepath.Join(config.Path(config.Current.Spool), name(m.Number))); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}

func name(number int) string {
	return fmt.Sprintf("%06d%s", number, suffix)
}
