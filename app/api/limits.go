package api

import (
	"time"

	"bobbin/app/api/handlers"
)

// Limits bound one request.
type Limits struct {
	handlers.Limits
	BodyBytes       int64 // a message of 1 MiB may be six times as long in JSON
	ImportBytes     int64 // of an import
	FileBytes       int64 // of a file
	FilesPerMessage int
	HeaderBytes     int
	ReadHeader      time.Duration // for the request's header
	ReadBody        time.Duration // for its body
	Idle            time.Duration // of a connection between requests
	Start           time.Duration // a request waits this long for the server to start
	Grace           time.Duration // for requests in progress when the server stops
	PerSecond       int           // requests of one key, with bursts of ten times as many; 0 = no limit
	UserPerSecond   int           // requests of one end user, likewise
}

// DefaultLimits returns the limits that hold without settings.
func DefaultLimits() Limits {
	return Limits{
		BodyBytes: 8 << 20, ImportBytes: 64 << 20, FileBytes: 20 << 20, FilesPerMessage: 8, HeaderBytes: 64 << 10,
		ReadHeader: 10 * time.Second, ReadBody: 30 * time.Second, Idle: 2 * time.Minute,
		Start: 10 * time.Second, Grace: 35 * time.Second, Limits: handlers.Limits{
			Wait: 5 * time.Minute, Streams: 8192, StreamsPerOwner: 4096, StreamsPerUser: 32,
			Stream: handlers.StreamOptions{Heartbeat: 15 * time.Second, WriteTimeout: 10 * time.Second},
		},
	}
}
