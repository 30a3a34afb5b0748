package core

import "time"

// EventPlace is how far a sweep through the events of all sessions has come, oldest
// first. The zero place is before all of them.
type EventPlace struct {
	At      time.Time
	Session SessionID
	Seq     int64
}

// SweptEvents is one step of such a sweep.
type SweptEvents struct {
	Removed int64
	Next    EventPlace // where the next step goes on
	Done    bool       // nothing old comes after it
}
