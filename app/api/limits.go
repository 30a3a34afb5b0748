package api

import (
	"time"

	"bobbin/app/api/handlers"
)

// Limits bound one request.
type Limits struct {
	BodyBytes       int64 // a message of 1 MiB may be six times as long in JSON
	ImportBytes     int64 // of an import
	FileBytes       int64 // of a file
	FilesPerMessage int
	HeaderBytes     int
	ReadHeader      time.Duration // for the request's header
	ReadBody        time.Duration // for its body
	Idle            time.Duration // of a connection between requests
	Write           time.Duration // for one frame of a stream
	Heartbeat       time.Duration // of a stream
	Start           time.Duration // a request waits this long for the server to start
	Wait            time.Duration // a request waits this long for its run
	Streams         int           // open streams and waiting requests, all callers
	StreamsPerOwner int           // of one owner
	StreamsPerUser  int           // of one end user
	Grace           time.Duration // for requests in progress when the server stops
	PerSecond       int           // requests of one key, with bursts of ten times as many; 0 = no limit
	UserPerSecond   int           // requests of one end user, likewise
}

// DefaultLimits returns the limits that hold without settings.
func DefaultLimits() Limits {
	return Limits{
		BodyBytes: 8 << 20, ImportBytes: 64 << 20, FileBytes: 20 << 20, FilesPerMessage: 8, HeaderBytes: 64 << 10,
		ReadHeader: 10 * time.Second, ReadBody: 30 * time.Second, Idle: 2 * time.Minute, Write: 10 * time.Second, Heartbeat: 15 * time.Second,
		Start: 10 * time.Second, Wait: 5 * time.Minute, Streams: 8192, StreamsPerOwner: 4096, StreamsPerUser: 32, Grace: 35 * time.Second,
	}
}

// streamLimits returns the limits of streams and waiting requests.
func (s *Server) streamLimits() handlers.Limits {
	l := s.limits
	return handlers.Limits{
		Wait: l.Wait, Streams: l.Streams, StreamsPerOwner: l.StreamsPerOwner, StreamsPerUser: l.StreamsPerUser,
		Stream: handlers.StreamOptions{Heartbeat: l.Heartbeat, WriteTimeout: l.Write, Observer: s.observer},
	}
}
