// Package pipeline runs work on many items at the same time.
package pipeline

import (
	"context"
	"errors"
)

// ErrWorkers reports a number of workers below 1.
var ErrWorkers = errors.New("number of workers must be at least 1")

type job[T any] struct {
	index int
	item  T
}

type outcome[R any] struct {
	index int
	value R
	err   error
}

// Map calls fn for each item, with at most the given number of calls at the same time, and returns the values in the order
// of the items. If a call fails, Map returns its error.
func Map[T, R any](ctx context.Context, workers int, items []T, fn func(context.Context, T) (R, error)) ([]R, error) {
	if workers < 1 {
		return nil, ErrWorkers
	}
	jobs := make(chan job[T])
	outcomes := make(chan outcome[R])
	for range workers {
		go func() {
			for j := range jobs {
				value, err := fn(ctx, j.item)
				outcomes <- outcome[R]{j.index, value, err}
			}
		}()
	}
	go func() {
		for i, item := range items {
			jobs <- job[T]{i, item}
		}
		close(jobs)
	}()
	values := make([]R, len(items))
	for range items {
		o := <-outcomes
		if o.err != nil {
			return nil, o.err
		}
		values[o.index] = o.value
	}
	return values, nil
}
