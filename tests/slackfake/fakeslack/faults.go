package fakeslack

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

// Fault disturbs the answers of the Web API. One without any disturbance lets its calls
// pass those behind it.
type Fault struct {
	Method     string        // "": every method
	Channel    string        // "": every channel
	Times      int           // how many calls it disturbs; 0: all, until ClearFaults
	RetryAfter time.Duration // the answer is 429, and the method does nothing
	Status     int           // the answer has this status, and the method does nothing
	Error      string        // the answer is this error, and the method does nothing
	Delay      time.Duration // the answer is late
	LoseAnswer bool          // the method works, and the connection breaks before the answer

	used int
}

// EventFaults disturb the deliveries of events.
type EventFaults struct {
	Duplicate bool // every event comes twice
	Reverse   int  // events are held back until there are so many, then they come in reverse order
	Dead      bool // the app cannot be reached
}

// Inject adds a fault. The first one that matches a call disturbs it.
func (s *Server) Inject(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
}

// ClearFaults ends all faults of the Web API.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// DisturbEvents replaces the faults of events. Events that are held back are delivered.
func (s *Server) DisturbEvents(f EventFaults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eventFaults = f
	s.releaseHeld()
}

// takeFault returns the fault for a call, zero for none. It takes mu.
func (s *Server) takeFault(method, channel string) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		if f.Method != "" && f.Method != method || f.Channel != "" && f.Channel != channel || f.Times > 0 && f.used == f.Times {
			continue
		}
		f.used++
		return *f
	}
	return Fault{}
}

func (f Fault) statusCode() int {
	if f.RetryAfter > 0 {
		return http.StatusTooManyRequests
	}
	return f.Status
}

// writeRefusal writes the answer of a fault with a status.
func (f Fault) writeRefusal(w http.ResponseWriter) {
	code := "internal_error"
	if f.RetryAfter > 0 {
		code = "ratelimited"
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(f.RetryAfter.Seconds()))))
	}
	writeJSON(w, f.statusCode(), reply{"ok": false, "error": code})
}
