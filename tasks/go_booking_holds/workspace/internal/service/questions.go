package service

import (
	"slices"

	"example.com/bookd/internal/booking"
)

func (s *Service) ask(request booking.Request) booking.Answer {
	switch request.Op {
	case booking.Define:
		if request.Resource == "" || request.Count < 1 {
			return booking.Refused(booking.BadRequest)
		}
		if !s.calendar.Define(request.Resource, request.Count) {
			return booking.Refused(booking.Exists)
		}
		return booking.Answer{OK: true}
	case booking.Get:
		if r := s.reservations[request.ID]; r != nil {
			return booking.Answer{OK: true, Reservation: r}
		}
		return booking.Refused(booking.Unknown)
	case booking.Ended:
		answer := booking.Answer{OK: true}
		for _, r := range s.expired {
			answer.IDs = append(answer.IDs, r.ID)
		}
		return answer
	case booking.List, booking.Free:
	default:
		return booking.Refused(booking.BadRequest)
	}
	if request.From >= request.To {
		return booking.Refused(booking.BadRequest)
	}
	if s.calendar.Units(request.Resource) == 0 {
		return booking.Refused(booking.Unknown)
	}
	overlapping := s.calendar.Overlapping(request.Resource, request.From, request.To)
	if request.Op == booking.List {
		return booking.Answer{OK: true, Reservations: overlapping}
	}
	free := pieces(overlapping, request.Resource, request.From, request.To)
	units := int64(s.calendar.Units(request.Resource))
	for i := range free {
		free[i][2] = units - free[i][2]
	}
	return booking.Answer{OK: true, Free: free}
}

// pieces cuts an interval where the number of units in use changes, and returns [from, to, units] for each piece.
func pieces(reservations []*booking.Reservation, resource string, from, to int64) [][3]int64 {
	type change struct{ at, units int64 }
	var changes []change
	for _, r := range reservations {
		units := int64(r.Units[resource])
		changes = append(changes, change{max(r.From, from), units})
		if r.To < to {
			changes = append(changes, change{r.To, -units})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return int(a.at - b.at) })
	var result [][3]int64
	used, start := int64(0), from
	for i, c := range changes {
		used += c.units
		if i+1 < len(changes) && changes[i+1].at == c.at {
			continue
		}
		before := int64(0)
		for _, earlier := range changes[:i+1] {
			if earlier.at < c.at {
				before += earlier.units
			}
		}
		if before == used {
			continue
		}
		if c.at > start {
			result = append(result, [3]int64{start, c.at, before})
		}
		start = c.at
	}
	return append(result, [3]int64{start, to, used})
}

// peak returns the greatest number of units that reservations use at some time of an interval.
func peak(reservations []*booking.Reservation, resource string, from, to int64) int {
	most := int64(0)
	for _, piece := range pieces(reservations, resource, from, to) {
		most = max(most, piece[2])
	}
	return int(most)
}
