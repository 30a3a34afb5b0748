package events

import (
	"context"
	"time"

	"bobbin/app/core"
)

// storeTime bounds one question to the store. Whoever watches in a process that cannot
// reach it any more had better come back to another one.
const storeTime = 10 * time.Second

// timedStore answers in time, or with an error.
type timedStore struct{ store eventStore }

func (t timedStore) After(ctx context.Context, session core.SessionID, after int64, limit int) ([]core.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	return t.store.After(ctx, session, after, limit)
}

func (t timedStore) Last(ctx context.Context, scope core.Scope, session core.SessionID) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	return t.store.Last(ctx, scope, session)
}

func (t timedStore) LastOf(ctx context.Context, sessions []core.SessionID) (map[core.SessionID]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	return t.store.LastOf(ctx, sessions)
}

// timedRuns answers in time, or with an error.
type timedRuns struct{ runs runStore }

func (t timedRuns) Active(ctx context.Context, scope core.Scope, session core.SessionID) (core.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	return t.runs.Active(ctx, scope, session)
}
