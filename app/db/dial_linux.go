package db

import (
	"errors"
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT of linux/tcp.h, in milliseconds, which package syscall
// lacks.
const tcpUserTimeout = 0x12

// limitUnanswered bounds how long sent data may stay unacknowledged by the peer's kernel.
// Sockets other than TCP have no such limit.
func limitUnanswered(c syscall.RawConn, d time.Duration) error {
	var failure error
	err := c.Control(func(fd uintptr) {
		failure = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(d.Milliseconds()))
	})
	if errors.Is(failure, syscall.ENOPROTOOPT) || errors.Is(failure, syscall.EOPNOTSUPP) {
		failure = nil
	}
	return errors.Join(err, failure)
}
