package e2e_test

import (
	"context"
	"testing"

	"bobbin/app/core"
)

// session makes a session.
func (s *feedServer) session(ctx context.Context, t *testing.T) core.SessionID {
	t.Helper()
	session, err := s.client.CreateSession(ctx, core.Session{})
	if err != nil {
		t.Fatal(err)
	}
	return session.ID
}
