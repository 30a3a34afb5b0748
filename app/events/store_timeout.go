package events

import (
	"context"
	"time"

	"bobbin/app/core"
)

// storeTime bounds one query of the store. A reader in a process that cannot reach the store
// should reconnect to another one.
const storeTime = 10 * time.Second

// timedStore is a core.EventStore with a timeout.
type timedStore struct{ store core.EventStore }

func (t timedStore) Page(ctx context.Context, session core.SessionID, after int64, limit int) ([]core.Event, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	return t.store.Page(ctx, session, after, limit)
}

func (t timedStore) Last(ctx context.Context, tenant core.Tenant, session core.SessionID) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	return t.store.Last(ctx, tenant, session)
}

func (t timedStore) LastOf(ctx context.Context, sessions []core.SessionID) (map[core.SessionID]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	return t.store.LastOf(ctx, sessions)
}

func (t timedStore) Heads(ctx context.Context, tenant core.Tenant, sessions []core.SessionID) ([]core.SessionHead, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	return t.store.Heads(ctx, tenant, sessions)
}

// timedRuns is a store of runs whose Active has a timeout.
type timedRuns struct{ core.RunStore }

func (t timedRuns) Active(ctx context.Context, tenant core.Tenant, session core.SessionID) (core.Run, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	return t.RunStore.Active(ctx, tenant, session)
}
