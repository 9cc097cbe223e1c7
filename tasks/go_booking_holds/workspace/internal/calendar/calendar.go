// Package calendar finds the reservations of a resource that overlap an interval.
package calendar

import (
	"slices"
	"sort"

	"example.com/bookd/internal/booking"
)

// Calendar has the active reservations of all resources.
//
// Reservations of a resource may overlap, since a resource has several units.
type Calendar struct {
	lanes map[string]*lane
	// found is used for the results of all queries, which are frequent.
	found []*booking.Reservation
}

// lane has the reservations of a resource in order of their start.
type lane struct {
	units   int
	entries []*booking.Reservation
	// reach[i] is the greatest end of entries[:i+1]. Searches that go backwards stop where it is no later than the interval.
	reach []int64
}

// New returns a calendar without resources.
func New() *Calendar {
	return &Calendar{lanes: map[string]*lane{}}
}

// Define adds a resource. It returns false if there is one with this name.
func (c *Calendar) Define(resource string, units int) bool {
	if c.lanes[resource] != nil {
		return false
	}
	c.lanes[resource] = &lane{units: units}
	return true
}

// Units returns the number of units of a resource, and 0 for an unknown one.
func (c *Calendar) Units(resource string) int {
	if l := c.lanes[resource]; l != nil {
		return l.units
	}
	return 0
}

// Add adds a reservation to its resources.
func (c *Calendar) Add(r *booking.Reservation) {
	for resource := range r.Units {
		l := c.lanes[resource]
		at := l.search(r)
		l.entries = slices.Insert(l.entries, at, r)
		l.reach = slices.Insert(l.reach, at, 0)
		l.update(at)
	}
}

// Remove removes a reservation from its resources, if it is there.
func (c *Calendar) Remove(r *booking.Reservation) {
	for resource := range r.Units {
		l := c.lanes[resource]
		at := l.search(r)
		if at == len(l.entries) || l.entries[at] != r {
			continue
		}
		l.entries = slices.Delete(l.entries, at, at+1)
		l.reach = slices.Delete(l.reach, at, at+1)
		l.update(at)
	}
}

// search returns the place of a reservation in the order of starts and numbers.
func (l *lane) search(r *booking.Reservation) int {
	return sort.Search(len(l.entries), func(i int) bool {
		e := l.entries[i]
		return e.From > r.From || e.From == r.From && e.Number >= r.Number
	})
}

// update computes reach anew from an index on.
func (l *lane) update(at int) {
	for i := at; i < len(l.entries); i++ {
		l.reach[i] = l.entries[i].To
		if i > 0 {
			l.reach[i] = max(l.reach[i], l.reach[i-1])
		}
	}
}

// Overlapping returns the reservations of a resource that overlap an interval, in order of their starts, then of their
// numbers. The slice is valid until the next call.
func (c *Calendar) Overlapping(resource string, from, to int64) []*booking.Reservation {
	c.found = c.found[:0]
	l := c.lanes[resource]
	end := sort.Search(len(l.entries), func(i int) bool { return l.entries[i].From >= to })
	for i := end - 1; i >= 0 && l.reach[i] > from; i-- {
		if l.entries[i].To > from {
			c.found = append(c.found, l.entries[i])
		}
	}
	slices.Reverse(c.found)
	return c.found
}
