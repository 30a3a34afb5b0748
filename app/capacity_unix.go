//go:build unix

package app

import (
	"math"

	"golang.org/x/sys/unix"
)

// maxOpenFiles returns how many files the process may have open. Go has raised the limit to the highest one
// that is allowed when the program started.
func maxOpenFiles() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt32
	}
	return int(min(uint64(limit.Cur), math.MaxInt32)) //nolint:unconvert // it is signed on FreeBSD
}
