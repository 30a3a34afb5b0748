package purge_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
)

// What processes left behind is removed at the start, and later within 5 s; a session
// that goes with it is gone for those who watch it, and so are its kept answers.
func TestRecoversAbandonedSessions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{abandoned: []core.SessionID{"import", "fork"}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- service(f).Run(ctx) }()
		synctest.Wait()
		if want := []core.SessionID{"import", "fork"}; !slices.Equal(f.recovered, want) || f.events != 1 || len(f.answers) != 1 {
			t.Errorf("recovered %v with %d events, and %d searches for answers; want %v, and one of each for the removed session", f.recovered, f.events, len(f.answers), want)
		}
		f.mu.Lock()
		f.fails = errors.New("the database is away")
		f.mu.Unlock()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		f.mu.Lock()
		f.fails, f.abandoned = nil, []core.SessionID{"purge"}
		f.mu.Unlock()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if !slices.Contains(f.recovered, "purge") {
			t.Errorf("recovered %v, want what was left behind later, too", f.recovered)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
