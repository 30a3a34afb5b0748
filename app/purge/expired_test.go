package purge_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
)

// What is old goes without a question; what is gone or in use is passed by.
func TestExpired(t *testing.T) {
	t.Parallel()
	f := &fake{}
	n, err := service(f).Expired(t.Context(), []core.SessionID{"a", "busy", "gone", "b"}, false)
	if err != nil || n != 2 {
		t.Errorf("got %d, %v, want 2 sessions", n, err)
	}
	if diff := cmp.Diff([]core.SessionID{"a", "gone", "b"}, f.removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	if f.events != 2 || len(f.answers) != 1 || f.answers[0] || f.compact != 0 {
		t.Errorf("got %d watchers told, answers %v, %d compactions; want 2, removed once, none", f.events, f.answers, f.compact)
	}
	if n, err := service(f).Expired(t.Context(), []core.SessionID{"gone"}, false); n != 0 || err != nil || len(f.answers) != 1 {
		t.Errorf("of sessions that are gone: %d, %v", n, err)
	}
}

func TestExpiredBreaks(t *testing.T) {
	t.Parallel()
	f := &fake{breaks: "b"}
	n, err := service(f).Expired(t.Context(), []core.SessionID{"a", "b", "c"}, false)
	if n != 1 || !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("got %d, %v, want one session and why there are not more", n, err)
	}
}
