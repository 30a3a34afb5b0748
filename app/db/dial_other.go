//go:build !linux

package db

import (
	"syscall"
	"time"
)

// limitUnanswered does nothing: only Linux lets a program say it.
func limitUnanswered(syscall.RawConn, time.Duration) error { return nil }
