// Package render renders templates.
package render

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"example.com/relay/internal/config"
	"example.com/relay/internal/ui"
)

// templates has the templates that were read.
var templates = map[string]string{}

// Message renders a template. The first line of a template is the subject. `{{NAME}}` stands for a value.
func Message(name string, values map[string]string) (subject, body string, err error) {
	text, ok := templates[name]
	if !ok {
		path := filepath.Join(config.Path(config.Current.Templates), name+".txt")
		ui.Debug("reading %s", path)
		content, err := os.ReadFile(path)
		if err != nil {
			return "", "", fmt.Errorf("template `%s`: can't be read", name)
		}
		text = string(content)
		templates[name] = text
	}
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(text, "{{")
		b.WriteString(before)
		if !ok {
			break
		}
		key, after, ok := strings.Cut(rest, "}}")
		if !ok {
			return "", "", fmt.Errorf("template `%s`: `}}` is missing", name)
		}
		value, ok := values[strings.TrimSpace(key)]
		if !ok {
			ui.Warn("template `%s`: no value for `%s`", name, strings.TrimSpace(key))
		}
		b.WriteString(value)
		text = after
	}
	subject, body, _ = strings.Cut(b.String(), "\n")
	return config.Current.SubjectPrefix + subject, body, nil
}
