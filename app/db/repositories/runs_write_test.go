package repositories_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
)

// sameJSON compares JSON columns by what they say: jsonb orders keys anew.
func sameJSON() cmp.Option {
	return cmp.Comparer(func(a, b json.RawMessage) bool {
		var x, y any
		if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
			return len(a) == len(b)
		}
		return cmp.Equal(x, y)
	})
}

func (s *store) sessionOf(t *testing.T, id core.SessionID) core.Session {
	t.Helper()
	session, err := s.sessions.Get(t.Context(), ann(), id)
	if err != nil {
		t.Fatalf("get session: %v", err)
	}
	return session
}
