// Package deadline has a queue of things that become due.
package deadline

import "container/heap"

// Queue returns things in the order of their deadlines.
type Queue[T comparable] struct {
	h items[T]
}

type items[T comparable] struct {
	list []T
	due  func(T) int64
	less func(a, b T) bool
}

// New returns a queue. due returns the deadline of a thing; less is the order of things with the same deadline.
func New[T comparable](due func(T) int64, less func(a, b T) bool) *Queue[T] {
	return &Queue[T]{items[T]{due: due, less: less}}
}

// Push adds a thing.
func (q *Queue[T]) Push(thing T) {
	heap.Push(&q.h, thing)
}

// PopDue removes and returns the next thing that is due at a time. It returns false if there is none.
func (q *Queue[T]) PopDue(at int64) (T, bool) {
	if len(q.h.list) == 0 || q.h.due(q.h.list[0]) > at {
		var none T
		return none, false
	}
	return heap.Pop(&q.h).(T), true
}

// Len returns the number of things in the queue.
func (q *Queue[T]) Len() int {
	return len(q.h.list)
}

func (h *items[T]) Len() int { return len(h.list) }

func (h *items[T]) Less(i, j int) bool {
	a, b := h.list[i], h.list[j]
	if h.due(a) != h.due(b) {
		return h.due(a) < h.due(b)
	}
	return h.less(a, b)
}

func (h *items[T]) Swap(i, j int) {
	h.list[i], h.list[j] = h.list[j], h.list[i]
}

// Push is for container/heap.
func (h *items[T]) Push(thing any) {
	h.list = append(h.list, thing.(T))
}

// Pop is for container/heap.
func (h *items[T]) Pop() any {
	last := len(h.list) - 1
	thing := h.list[last]
	h.list = h.list[:last]
	return thing
}
