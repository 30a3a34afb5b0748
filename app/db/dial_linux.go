package db

import (
	"errors"
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT of linux/tcp.h, in milliseconds, which package
// syscall does not have.
const tcpUserTimeout = 0x12

// limitUnanswered bounds how long sent data may stay without an answer of the other side's
// kernel. A socket that is none of TCP has no such limit.
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
