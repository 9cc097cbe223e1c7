// Package service executes requests. The rules are in docs/rules.md.
package service

import (
	"slices"

	"example.com/bookd/internal/booking"
	"example.com/bookd/internal/calendar"
	"example.com/bookd/internal/deadline"
	"example.com/bookd/internal/retry"
)

// Service has all reservations.
type Service struct {
	now          int64
	count        int
	reservations map[string]*booking.Reservation
	calendar     *calendar.Calendar
	answers      *retry.Store
	expirations  *deadline.Queue[*booking.Reservation]
	archive      *deadline.Queue[*booking.Reservation]
	expired      []*booking.Reservation
}

// New returns a service without resources.
func New() *Service {
	byNumber := func(a, b *booking.Reservation) bool { return a.Number < b.Number }
	return &Service{
		reservations: map[string]*booking.Reservation{},
		calendar:     calendar.New(),
		answers:      retry.NewStore(),
		expirations:  deadline.New(func(r *booking.Reservation) int64 { return r.Expires }, byNumber),
		archive:      deadline.New(func(r *booking.Reservation) int64 { return r.To + booking.ArchiveAfter }, byNumber),
	}
}

// Do executes a request.
func (s *Service) Do(request booking.Request) booking.Answer {
	if request.At < s.now {
		return booking.Refused(booking.BadRequest)
	}
	s.now = request.At
	s.sweep()
	if !request.Op.IsOfClient() {
		return s.ask(request)
	}
	if request.Client == "" || request.Key == "" {
		return booking.Refused(booking.BadRequest)
	}
	if answer, ok := s.answers.Find(request); ok {
		return answer
	}
	answer := s.change(request)
	if answer.IsKept() {
		s.answers.Keep(request, answer)
	}
	return answer
}

// sweep applies what has become due.
func (s *Service) sweep() {
	s.answers.Drop(s.now)
	for {
		r, ok := s.expirations.PopDue(s.now)
		if !ok {
			break
		}
		if r.State == booking.Held {
			r.State = booking.Expired
			s.calendar.Remove(r)
			s.expired = append(s.expired, r)
		}
	}
	for {
		r, ok := s.archive.PopDue(s.now)
		if !ok {
			break
		}
		r.IsArchived = true
		s.calendar.Remove(r)
		delete(s.reservations, r.ID)
	}
	s.expired = slices.DeleteFunc(s.expired, func(r *booking.Reservation) bool { return r.IsArchived })
}

func (s *Service) change(request booking.Request) booking.Answer {
	if request.Op == booking.Hold {
		return s.hold(request)
	}
	r := s.reservations[request.ID]
	if r == nil || r.Client != request.Client {
		return booking.Refused(booking.Unknown)
	}
	if !r.IsActive() {
		return booking.Refused(booking.Gone)
	}
	switch request.Op {
	case booking.Renew:
		return s.renew(r, request.TTL)
	case booking.Confirm:
		return s.confirm(r)
	case booking.Resize:
		return s.resize(r, request.To)
	case booking.Move:
		return s.move(r, request.From, request.To)
	default:
		return s.cancel(r)
	}
}

func (s *Service) hold(request booking.Request) booking.Answer {
	if len(request.Units) == 0 || request.From >= request.To || request.TTL < 1 {
		return booking.Refused(booking.BadRequest)
	}
	r := &booking.Reservation{
		Client:  request.Client,
		State:   booking.Held,
		Units:   request.Units,
		From:    request.From,
		To:      request.To,
		Expires: request.At + request.TTL,
	}
	for _, resource := range r.Resources() {
		if s.calendar.Units(resource) == 0 {
			return booking.Refused(booking.Unknown)
		}
	}
	for resource, units := range r.Units {
		if units < 1 || units > s.calendar.Units(resource) {
			return booking.Refused(booking.BadRequest)
		}
	}
	if with := s.obstacles(r, r.From, r.To); len(with) > 0 {
		return conflict(with)
	}
	s.count++
	r.Number = s.count
	r.ID = booking.ID(r.Number)
	s.reservations[r.ID] = r
	s.calendar.Add(r)
	s.expirations.Push(r)
	s.archive.Push(r)
	return booking.Answer{OK: true, Reservation: r}
}

func (s *Service) renew(r *booking.Reservation, ttl int64) booking.Answer {
	if ttl < 1 {
		return booking.Refused(booking.BadRequest)
	}
	if r.State != booking.Held {
		return booking.Refused(booking.Gone)
	}
	r.Expires = s.now + ttl
	return booking.Answer{OK: true, Reservation: r}
}

func (s *Service) confirm(r *booking.Reservation) booking.Answer {
	if r.State != booking.Held {
		return booking.Refused(booking.Gone)
	}
	r.State = booking.Booked
	r.Expires = 0
	return booking.Answer{OK: true, Reservation: r}
}

func (s *Service) resize(r *booking.Reservation, to int64) booking.Answer {
	if to <= r.From {
		return booking.Refused(booking.BadRequest)
	}
	if with := s.obstacles(r, r.From, to); len(with) > 0 {
		return conflict(with)
	}
	r.To = to
	return booking.Answer{OK: true, Reservation: r}
}

func (s *Service) move(r *booking.Reservation, from, to int64) booking.Answer {
	if from >= to {
		return booking.Refused(booking.BadRequest)
	}
	if with := s.obstacles(r, from, to); len(with) > 0 {
		return conflict(with)
	}
	s.calendar.Remove(r)
	r.From, r.To = from, to
	s.calendar.Add(r)
	return booking.Answer{OK: true, Reservation: r}
}

func (s *Service) cancel(r *booking.Reservation) booking.Answer {
	r.State = booking.Canceled
	r.Expires = 0
	s.calendar.Remove(r)
	return booking.Answer{OK: true, Reservation: r}
}

// obstacles returns the reservations that are in the way of a reservation in an interval.
func (s *Service) obstacles(r *booking.Reservation, from, to int64) []*booking.Reservation {
	var all []*booking.Reservation
	for _, resource := range r.Resources() {
		others := s.calendar.Overlapping(resource, from, to)
		others = slices.DeleteFunc(others, func(other *booking.Reservation) bool { return other == r })
		if peak(others, resource, from, to)+r.Units[resource] > s.calendar.Units(resource) {
			all = union(all, others)
		}
	}
	return all
}

// union returns the reservations of two lists, each one once.
func union(a, b []*booking.Reservation) []*booking.Reservation {
	if len(a) == 0 {
		return b
	}
	for _, r := range b {
		if !slices.Contains(a, r) {
			a = append(a, r)
		}
	}
	return a
}

func conflict(with []*booking.Reservation) booking.Answer {
	numbers := make([]int, len(with))
	for i, r := range with {
		numbers[i] = r.Number
	}
	slices.Sort(numbers)
	answer := booking.Refused(booking.Conflict)
	for _, number := range numbers {
		answer.With = append(answer.With, booking.ID(number))
	}
	return answer
}
