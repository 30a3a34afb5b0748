//go:build !linux

package db

import (
	"syscall"
	"time"
)

// limitUnanswered does nothing: only Linux has this option.
func limitUnanswered(syscall.RawConn, time.Duration) error { return nil }
