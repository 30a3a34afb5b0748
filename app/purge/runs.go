package purge

import (
	"context"
	"errors"
	"time"

	"bobbin/app/core"
)

// clear sees to it that nobody works on the sessions. Without force a run that has
// not ended is an ErrConflict; with it, it is canceled and waited for.
func (s *Service) clear(ctx context.Context, ids []core.SessionID, force bool) error {
	runs, err := s.Store.Unfinished(ctx, ids)
	if err != nil || len(runs) == 0 {
		return err
	}
	if !force {
		return core.Errorf(core.ErrConflict, "run %s in session %s has not ended (%d such runs in all): wait for it, or cancel with --force",
			runs[0].ID, runs[0].SessionID, len(runs))
	}
	if s.Alone {
		return nil
	}
	for i := len(runs) - 1; i >= 0; i-- { // the queued ones first, so that none of them begins
		err := s.Runs.Cancel(ctx, core.Scope{Owner: runs[i].Owner}, runs[i].ID)
		if err != nil && !isNotFound(err) {
			return err
		}
	}
	return s.await(ctx, ids)
}

// await returns when nobody works on a run of the sessions: it has ended, or its
// lease is past.
func (s *Service) await(ctx context.Context, ids []core.SessionID) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(s.CancelTime)
	defer limit.Stop()
	for {
		runs, err := s.Store.Unfinished(ctx, ids)
		if err != nil {
			return err
		}
		busy := core.RunID("")
		for _, run := range runs {
			if run.Leased {
				busy = run.ID
			}
		}
		if busy == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-limit.C:
			return core.Errorf(core.ErrConflict, "run %s was canceled and does not end; nothing was removed, try again in a minute", busy)
		case <-tick.C:
		}
	}
}

func isNotFound(err error) bool { return errors.Is(err, core.ErrNotFound) }
