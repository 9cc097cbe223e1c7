// Package retry keeps answers for clients that repeat their requests.
package retry

import (
	"example.com/bookd/internal/booking"
	"example.com/bookd/internal/deadline"
)

// KeepSeconds is the time for which an answer is kept after it was given last.
const KeepSeconds = 600

// Store has the answers that are kept.
type Store struct {
	entries map[string]*entry
	queue   *deadline.Queue[*entry]
}

type entry struct {
	name    string
	content string
	answer  booking.Answer
	used    int64
}

// NewStore returns a store without answers.
func NewStore() *Store {
	due := func(e *entry) int64 { return e.used + KeepSeconds }
	less := func(a, b *entry) bool { return a.name < b.name }
	return &Store{entries: map[string]*entry{}, queue: deadline.New(due, less)}
}

// Drop forgets the answers whose time is over.
func (s *Store) Drop(at int64) {
	for {
		e, ok := s.queue.PopDue(at)
		if !ok {
			return
		}
		delete(s.entries, e.name)
	}
}

// Find returns the answer for a request that was answered before, or a refusal if its key was used for another one.
func (s *Store) Find(request booking.Request) (booking.Answer, bool) {
	e := s.entries[name(request)]
	if e == nil {
		return booking.Answer{}, false
	}
	if e.content != request.Content() {
		return booking.Refused(booking.KeyReused), true
	}
	e.used = request.At
	return e.answer, true
}

// Keep keeps the answer to a request.
func (s *Store) Keep(request booking.Request, answer booking.Answer) {
	e := &entry{name: name(request), content: request.Content(), answer: answer, used: request.At}
	s.entries[e.name] = e
	s.queue.Push(e)
}

func name(request booking.Request) string {
	return request.Client + "/" + request.Key
}
