// Command driver runs a pipeline whose calls wait for permits that arrive on the standard input.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/digest/internal/pipeline"
)

type request struct {
	Op          string   `json:"op"`
	Items       int      `json:"items"`
	Workers     int      `json:"workers"`
	Window      int      `json:"window"`
	MaxFailures int      `json:"max_failures"`
	Auto        []string `json:"auto"`
	Deaf        []string `json:"deaf"`
	Events      []string `json:"events"`
	Call        string   `json:"call"`
	How         string   `json:"how"`
	Cause       string   `json:"cause"`
	Index       int      `json:"index"`
	Fail        []int    `json:"fail"`
	Skip        []int    `json:"skip"`
	Canceled    bool     `json:"canceled"`
}

var (
	mu      sync.Mutex
	changed = sync.NewCond(&mu)
	events  []string
	permits = map[string]chan string{}
	works   = map[int]context.Context{}
	cancel  context.CancelCauseFunc
	base    int
	peak    int
	done    bool
	stats   pipeline.Stats
	result  error
	cause   = errors.New("canceled by the caller")
)

func note(text string) {
	mu.Lock()
	defer mu.Unlock()
	events = append(events, text)
	peak = max(peak, runtime.NumGoroutine())
	changed.Broadcast()
}

func permit(name string) chan string {
	mu.Lock()
	defer mu.Unlock()
	if permits[name] == nil {
		permits[name] = make(chan string, 1)
	}
	return permits[name]
}

// call waits for a permit of a call and returns how it shall end.
func call(ctx context.Context, kind string, index int, auto, deaf []string) (string, error) {
	name := fmt.Sprintf("%s %d", kind, index)
	note("+" + name)
	defer note("-" + name)
	how := "ok"
	if !slices.Contains(auto, kind) && !slices.Contains(auto, name) {
		over := ctx.Done()
	wait:
		for {
			select {
			case how = <-permit(name):
				break wait
			case <-over:
				note("!" + name + " " + context.Cause(ctx).Error())
				if !slices.Contains(deaf, kind) {
					return "", ctx.Err()
				}
				over = nil
			}
		}
	}
	switch {
	case how == "ok" || how == "end":
		return how, nil
	case how == "skip":
		return "", fmt.Errorf("nothing to do: %w", pipeline.ErrSkip)
	case strings.HasPrefix(how, "panic "):
		panic(strings.TrimPrefix(how, "panic "))
	}
	return "", errors.New(how)
}

func start(r request) {
	var ctx context.Context
	ctx, cancel = context.WithCancelCause(context.Background())
	if r.Canceled {
		cancel(cause)
	}
	base = runtime.NumGoroutine()
	taken := 0
	source := func(ctx context.Context) (int, error) {
		how, err := call(ctx, "source", taken, r.Auto, r.Deaf)
		if err != nil {
			return 0, err
		}
		if how == "end" || taken == r.Items {
			return 0, fmt.Errorf("no more: %w", io.EOF)
		}
		taken++
		return taken - 1, nil
	}
	work := func(ctx context.Context, item int) (string, error) {
		mu.Lock()
		works[item] = ctx
		mu.Unlock()
		if slices.Contains(r.Fail, item) {
			note(fmt.Sprintf("+work %d", item))
			return "partial", fmt.Errorf("bad %d", item)
		}
		if slices.Contains(r.Skip, item) {
			return "partial", pipeline.ErrSkip
		}
		_, err := call(ctx, "work", item, r.Auto, r.Deaf)
		return fmt.Sprintf("v%d", item), err
	}
	sink := func(ctx context.Context, result pipeline.Result[string]) error {
		text := result.Value
		if result.Err != nil {
			text += "!" + result.Err.Error()
		}
		note(fmt.Sprintf("=%d %s", result.Index, text))
		_, err := call(ctx, "sink", result.Index, r.Auto, r.Deaf)
		return err
	}
	opts := pipeline.Options{Workers: r.Workers, Window: r.Window, MaxFailures: r.MaxFailures}
	go func() {
		s, err := pipeline.Run(ctx, opts, source, work, sink)
		mu.Lock()
		stats, result, done = s, err, true
		mu.Unlock()
		note("returned")
	}()
}

func within(limit time.Duration, ready func() bool) bool {
	end := time.Now().Add(limit)
	for !ready() {
		if time.Now().After(end) {
			return false
		}
		time.Sleep(time.Millisecond)
	}
	return true
}

func snapshot() []string {
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(events)
}

func finish() map[string]any {
	if !within(5*time.Second, func() bool { mu.Lock(); defer mu.Unlock(); return done }) {
		return map[string]any{"error": "timeout", "message": fmt.Sprintf("Run did not return: %q", snapshot())}
	}
	left := 0
	within(3*time.Second, func() bool { left = runtime.NumGoroutine() - base; return left <= 0 })
	answer := map[string]any{
		"taken": stats.Taken, "delivered": stats.Delivered, "skipped": stats.Skipped, "failed": stats.Failed,
		"error": "", "left": max(left, 0), "is_cause": result == cause, "item": -1, "panic": nil,
		"more": peak - base - 1, "events": snapshot(),
	}
	if result != nil {
		answer["error"] = result.Error()
	}
	if item := (*pipeline.ItemError)(nil); errors.As(result, &item) {
		answer["item"] = item.Index
	}
	if trouble := (*pipeline.PanicError)(nil); errors.As(result, &trouble) {
		answer["panic"] = fmt.Sprint(trouble.Value)
		answer["stack"] = len(trouble.Stack) > 0
	}
	return map[string]any{"result": answer}
}

func mapped(r request) map[string]any {
	items := make([]int, r.Items)
	for i := range items {
		items[i] = i
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	if r.Canceled {
		cancel(cause)
	}
	base = runtime.NumGoroutine()
	bad := make([]error, r.Items)
	for i := range bad {
		bad[i] = fmt.Errorf("bad %d", i)
	}
	late := make(chan struct{})
	values, err := pipeline.Map(ctx, r.Workers, items, func(ctx context.Context, item int) (string, error) {
		switch {
		case len(r.Fail) > 1 && item == r.Fail[0]:
			// Fails after the last one of the list has failed.
			<-late
			return "", bad[item]
		case len(r.Fail) > 1 && item == r.Fail[len(r.Fail)-1]:
			close(late)
			return "", bad[item]
		case slices.Contains(r.Fail, item):
			return "", bad[item]
		case slices.Contains(r.Skip, item):
			return "partial", pipeline.ErrSkip
		}
		return fmt.Sprintf("v%d", item), nil
	})
	left := 0
	within(3*time.Second, func() bool { left = runtime.NumGoroutine() - base; return left <= 0 })
	return map[string]any{"result": map[string]any{
		"values": values, "left": max(left, 0), "is_cause": err == cause, "failed": slices.Index(bad, err),
	}}
}

func answer(r request) map[string]any {
	switch r.Op {
	case "start":
		start(r)
	case "permit":
		permit(r.Call) <- r.How
	case "cancel":
		cancel(cause)
	case "await":
		if !within(5*time.Second, func() bool {
			seen := snapshot()
			for _, event := range r.Events {
				if !slices.Contains(seen, event) {
					return false
				}
			}
			return true
		}) {
			return map[string]any{"error": "timeout", "message": fmt.Sprintf("waited for %q, have %q", r.Events, snapshot())}
		}
	case "settle":
		// Gives a run that does too much time to do it.
		count := -1
		for count != len(snapshot()) {
			count = len(snapshot())
			time.Sleep(40 * time.Millisecond)
		}
		return map[string]any{"result": snapshot()}
	case "context":
		return map[string]any{"result": within(3*time.Second, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return works[r.Index] != nil && works[r.Index].Err() != nil
		})}
	case "finish":
		return finish()
	case "map":
		return mapped(r)
	}
	return map[string]any{"result": true}
}

func main() {
	out := json.NewEncoder(os.Stdout)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			panic(err)
		}
		out.Encode(answer(r))
	}
}
