// Package booking has the types that requests, answers and the journal are made of.
package booking

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ArchiveAfter is the time in seconds after its end at which a reservation is archived.
const ArchiveAfter = 3600

// State is the state of a reservation.
type State string

// States of a reservation.
const (
	Held     State = "held"
	Booked   State = "booked"
	Canceled State = "canceled"
	Expired  State = "expired"
)

// Reservation takes units of resources during an interval.
type Reservation struct {
	ID      string         `json:"id"`
	Client  string         `json:"client"`
	State   State          `json:"state"`
	Units   map[string]int `json:"units"`
	From    int64          `json:"from"`
	To      int64          `json:"to"`
	Expires int64          `json:"expires,omitempty"`

	Number     int  `json:"-"`
	IsArchived bool `json:"-"`
}

// IsActive returns true if the reservation takes its units.
func (r *Reservation) IsActive() bool {
	return r.State == Held || r.State == Booked
}

// Resources returns the names of the resources in order.
func (r *Reservation) Resources() []string {
	return slices.Sorted(maps.Keys(r.Units))
}

// ID returns the identifier of the reservation with a number.
func ID(number int) string {
	return "r" + strconv.Itoa(number)
}

// Operation is the name of an operation.
type Operation string

// Operations that bookd knows.
const (
	Define  Operation = "define"
	Hold    Operation = "hold"
	Renew   Operation = "renew"
	Confirm Operation = "confirm"
	Resize  Operation = "resize"
	Move    Operation = "move"
	Cancel  Operation = "cancel"
	Get     Operation = "get"
	List    Operation = "list"
	Free    Operation = "free"
	Ended   Operation = "expired"
)

// IsOfClient returns true for an operation that a client may repeat.
func (o Operation) IsOfClient() bool {
	switch o {
	case Hold, Renew, Confirm, Resize, Move, Cancel:
		return true
	}
	return false
}

// Request asks for an operation. Fields that an operation doesn't have are zero.
type Request struct {
	At       int64          `json:"at"`
	Op       Operation      `json:"op"`
	Client   string         `json:"client,omitempty"`
	Key      string         `json:"key,omitempty"`
	ID       string         `json:"id,omitempty"`
	Resource string         `json:"resource,omitempty"`
	Count    int            `json:"count,omitempty"`
	Units    map[string]int `json:"units,omitempty"`
	From     int64          `json:"from,omitempty"`
	To       int64          `json:"to,omitempty"`
	TTL      int64          `json:"ttl,omitempty"`
}

// Content returns a text that is equal for requests that differ in their time only.
func (r Request) Content() string {
	var b strings.Builder
	for _, text := range []string{string(r.Op), r.ID, r.Resource} {
		b.WriteString(strconv.Quote(text))
	}
	for _, number := range []int64{int64(r.Count), r.From, r.To, r.TTL} {
		b.WriteByte(' ')
		b.WriteString(strconv.FormatInt(number, 10))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Units)) {
		b.WriteByte(' ')
		b.WriteString(strconv.Quote(name))
		b.WriteString(strconv.Itoa(r.Units[name]))
	}
	return b.String()
}

// Kinds of errors in answers.
const (
	BadRequest = "bad_request"
	Conflict   = "conflict"
	Exists     = "exists"
	Gone       = "gone"
	KeyReused  = "key_reused"
	Unknown    = "unknown"
)

// Answer is what bookd says about a request.
type Answer struct {
	OK           bool           `json:"ok"`
	Error        string         `json:"error,omitempty"`
	With         []string       `json:"with,omitempty"`
	Reservation  *Reservation   `json:"reservation,omitempty"`
	Reservations []*Reservation `json:"reservations,omitempty"`
	Free         [][3]int64     `json:"free,omitempty"`
	IDs          []string       `json:"ids,omitempty"`
}

// Refused returns the answer with an error.
func Refused(kind string) Answer {
	return Answer{Error: kind}
}

// IsKept returns true for an answer that retries get again and that the journal has.
func (a Answer) IsKept() bool {
	return a.Error != BadRequest && a.Error != KeyReused
}
