package purge

import (
	"context"
	"errors"
	"time"

	"bobbin/app/core"
)

// stopRuns ensures that no run of the sessions is active. Without force an unfinished run is an
// ErrConflict; with force it is canceled and waited for.
func (s *Service) stopRuns(ctx context.Context, ids []core.SessionID, force bool) error {
	runs, err := s.Store.Unfinished(ctx, ids)
	if err != nil || len(runs) == 0 {
		return err
	}
	if !force {
		return core.Errorf(core.ErrConflict, "run %s in session %s has not ended (%d such runs in total): wait for it, or cancel with --force",
			runs[0].ID, runs[0].SessionID, len(runs))
	}
	for i := len(runs) - 1; i >= 0; i-- { // queued ones first, so that none of them begins
		err := s.CancelRun(ctx, core.Tenant{Owner: runs[i].Owner}, runs[i].ID)
		if err != nil && !isNotFound(err) {
			return err
		}
	}
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
			return core.Errorf(core.ErrConflict, "run %s was canceled but has not ended; nothing was removed, try again in a minute", busy)
		case <-tick.C:
		}
	}
}

func isNotFound(err error) bool { return errors.Is(err, core.ErrNotFound) }
