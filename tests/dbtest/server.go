package dbtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// Server is a PostgreSQL of one test that can be stopped and started again: it listens at
// the same address each time and keeps committed data. Not safe for concurrent use.
type Server struct {
	URL string // of an empty database

	cluster cluster
	owner   process
	port    string
	now     *runningServer // nil = stopped
}

// StopMode is how a Server is stopped.
type StopMode string

// The modes are PostgreSQL's own.
const (
	StopFast      StopMode = "fast"      // disconnects clients and rolls back transactions
	StopImmediate StopMode = "immediate" // like a crash: the next start recovers
)

// stopTime bounds how long a server may take to stop.
const stopTime = time.Minute

// NewServer starts a PostgreSQL for this test only, and stops and removes it afterwards.
// Without PostgreSQL the test is skipped, or fails if BOBBIN_TEST_REQUIRE says so.
func NewServer(t testing.TB) *Server {
	t.Helper()
	bin, err := findPrograms()
	if errors.Is(err, errMissing) && !strings.Contains(os.Getenv(requireVariable), "postgres") {
		t.Skip(err)
	}
	must.Do(t, err)
	asUser := must.Get(serverUser())(t)
	dir, err := os.MkdirTemp("", "bobbin-own-postgres-") //nolint:usetesting // the server's user must reach it
	must.Do(t, err)
	s := &Server{cluster: cluster{dir: dir, bin: bin, asUser: asUser, safe: true}, owner: thisProcess()}
	t.Cleanup(func() {
		compare.Error(t, "remove the test's PostgreSQL", nil, errors.Join(s.Stop(StopImmediate), os.RemoveAll(dir)))
	})
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	r := must.Get(s.cluster.startNew(ctx, s.owner))(t)
	s.now = &r
	u := must.Get(url.Parse(r.url))(t)
	s.port, s.URL = u.Port(), r.url
	return s
}

// Stop stops the server. It does nothing if the server is stopped.
func (s *Server) Stop(mode StopMode) error {
	if s.now == nil {
		return nil
	}
	if err := signalServer(s.now.pid, mode); err != nil {
		return fmt.Errorf("stop postgres: %w", err)
	}
	limit := time.NewTimer(stopTime)
	defer limit.Stop()
	select {
	case <-s.now.exited: //nolint:errcheck // an immediate stop exits with an error
		s.now = nil
		return nil
	case <-limit.C:
		return fmt.Errorf("postgres has not stopped (%s) after %s", mode, stopTime)
	}
}

// Start starts a stopped server, and returns when it answers.
func (s *Server) Start(ctx context.Context) error {
	if s.now != nil {
		return nil
	}
	r, err := s.cluster.startServer(ctx, s.owner, s.port)
	if err != nil {
		return err
	}
	s.now = &r
	return nil
}
