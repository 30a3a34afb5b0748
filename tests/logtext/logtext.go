// Package logtext keeps what a test's program writes.
package logtext

import (
	"strings"
	"sync"
)

// Log is what was written so far. Safe for concurrent use.
type Log struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
