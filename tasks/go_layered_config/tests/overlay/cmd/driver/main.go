// Command driver runs the program several times in one process.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"sync"
	"time"

	"example.com/relay/internal/app"
)

type request struct {
	Op    string            `json:"op"`
	Name  string            `json:"name"`
	Args  []string          `json:"args"`
	Dir   string            `json:"dir"`
	Env   map[string]string `json:"env"`
	Now   string            `json:"now"`
	Stdin string            `json:"stdin"`
	Count int               `json:"count"`
	Runs  []request         `json:"runs"`
}

type outcome struct {
	Status int    `json:"status"`
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
}

func run(r request, stdin io.Reader) outcome {
	var out, err bytes.Buffer
	now, _ := time.Parse(time.RFC3339, r.Now)
	status := app.Run(app.Env{
		Args: r.Args, Dir: r.Dir, Getenv: func(name string) string { return r.Env[name] }, Now: func() time.Time { return now },
		Stdin: stdin, Stdout: &out, Stderr: &err,
	})
	return outcome{status, out.String(), err.String()}
}

// slow is an input that tells when it is read and waits for its content.
type slow struct {
	once    sync.Once
	isRead  chan struct{}
	content chan string
	rest    *bytes.Buffer
}

func (s *slow) Read(block []byte) (int, error) {
	s.once.Do(func() {
		close(s.isRead)
		s.rest = bytes.NewBufferString(<-s.content)
	})
	return s.rest.Read(block)
}

func main() {
	answers := json.NewEncoder(os.Stdout)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	inputs := map[string]*slow{}
	outcomes := map[string]chan outcome{}
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			panic(err)
		}
		var result any = true
		switch r.Op {
		case "run":
			result = run(r, bytes.NewBufferString(r.Stdin))
		case "start":
			input := &slow{isRead: make(chan struct{}), content: make(chan string, 1)}
			done := make(chan outcome, 1)
			inputs[r.Name], outcomes[r.Name] = input, done
			go func() { done <- run(r, input) }()
			<-input.isRead
		case "finish":
			inputs[r.Name].content <- r.Stdin
			result = <-outcomes[r.Name]
		case "together":
			// Runs all requests count times at the same time.
			all := make([]outcome, len(r.Runs)*r.Count)
			var group sync.WaitGroup
			for i := range all {
				group.Add(1)
				go func() {
					defer group.Done()
					all[i] = run(r.Runs[i%len(r.Runs)], bytes.NewReader(nil))
				}()
			}
			group.Wait()
			result = all
		}
		answers.Encode(map[string]any{"result": result})
	}
}
