package api

import (
	"time"

	"bobbin/app/api/handlers"
)

// Limits bound one request. A zero field means its default.
type Limits struct {
	BodyBytes       int64         // 8 MiB; a message of 1 MiB may be six times as long in JSON
	ImportBytes     int64         // of an import: 64 MiB
	FileBytes       int64         // of a file: 20 MiB
	FilesPerMessage int           // 8
	HeaderBytes     int           // 64 KiB
	ReadHeader      time.Duration // for the request's header: 10 s
	ReadBody        time.Duration // for its body: 30 s
	Idle            time.Duration // of a connection between requests: 2 min
	Write           time.Duration // for one frame of a stream: 10 s
	Heartbeat       time.Duration // of a stream: 15 s
	Start           time.Duration // a request waits this long for the server to start: 10 s
	Wait            time.Duration // a request waits this long for its run: 5 min
	Streams         int           // open streams and waiting requests, all callers: 8,192
	StreamsPerOwner int           // of one owner: 4,096
	StreamsPerUser  int           // of one end user: 32
	Grace           time.Duration // for requests in progress when the server stops: 35 s
	PerSecond       int           // requests of one key, with bursts of ten times as many; 0 = no limit
	UserPerSecond   int           // requests of one end user, likewise
}

// withDefaults returns the limits with no field zero.
func (l Limits) withDefaults() Limits {
	return Limits{
		BodyBytes:       orDefault(l.BodyBytes, 8<<20),
		ImportBytes:     orDefault(l.ImportBytes, 64<<20),
		FileBytes:       orDefault(l.FileBytes, 20<<20),
		FilesPerMessage: orDefault(l.FilesPerMessage, 8),
		HeaderBytes:     orDefault(l.HeaderBytes, 64<<10),
		ReadHeader:      orDefault(l.ReadHeader, 10*time.Second),
		ReadBody:        orDefault(l.ReadBody, 30*time.Second),
		Idle:            orDefault(l.Idle, 2*time.Minute),
		Write:           orDefault(l.Write, 10*time.Second),
		Heartbeat:       orDefault(l.Heartbeat, 15*time.Second),
		Start:           orDefault(l.Start, 10*time.Second),
		Wait:            orDefault(l.Wait, 5*time.Minute),
		Streams:         orDefault(l.Streams, 8192),
		StreamsPerOwner: orDefault(l.StreamsPerOwner, 4096),
		StreamsPerUser:  orDefault(l.StreamsPerUser, 32),
		Grace:           orDefault(l.Grace, 35*time.Second),
		PerSecond:       l.PerSecond,
		UserPerSecond:   l.UserPerSecond,
	}
}

// orDefault returns v if it is positive, else the default.
func orDefault[T int | int64 | time.Duration](v, fallback T) T {
	if v > 0 {
		return v
	}
	return fallback
}

// streamLimits returns the limits of streams and waiting requests.
func (s *Server) streamLimits() handlers.Limits {
	l := s.limits
	return handlers.Limits{
		Wait: l.Wait, Streams: l.Streams, StreamsPerOwner: l.StreamsPerOwner, StreamsPerUser: l.StreamsPerUser,
		Stream: handlers.StreamOptions{Heartbeat: l.Heartbeat, WriteTimeout: l.Write, Observer: s.observer},
	}
}
