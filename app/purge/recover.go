package purge

import (
	"context"
	"log/slog"
	"time"

	"bobbin/app/core"
)

// How often abandoned sessions are searched for, and how many at a time.
const (
	recoverEvery = 5 * time.Second
	recoverBatch = 20
)

// Run removes what processes left behind that died, or lost their database, during an import, a
// fork or a purge. It sweeps immediately and then every 5 s, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	return core.Every(ctx, recoverEvery, s.recoverAll)
}

// recoverAll recovers the sessions that are currently abandoned.
func (s *Service) recoverAll(ctx context.Context) {
	ids, err := s.Store.Abandoned(ctx, s.Worker, recoverBatch)
	for _, id := range ids {
		if err = s.recoverSession(ctx, id); err != nil {
			break
		}
	}
	if err != nil && ctx.Err() == nil {
		s.Logger.WarnContext(ctx, "abandoned sessions not recovered", slog.Any("err", err))
	}
}

// recoverSession removes what was left behind in a session, or the session.
func (s *Service) recoverSession(ctx context.Context, id core.SessionID) error {
	marks := core.PurgeMarks{IDs: marksOf([]core.SessionID{id})}
	if err := s.markBlobs(ctx, &marks, []core.SessionID{id}, "", ""); err != nil {
		return err
	}
	gone, err := s.Store.Recover(ctx, id, s.Worker)
	if err != nil {
		return err
	}
	s.Logger.InfoContext(ctx, "abandoned session recovered", slog.String("session_id", string(id)), slog.Bool("removed", gone.Removed["sessions"] > 0))
	if gone.Removed["sessions"] == 0 {
		return nil
	}
	s.Publisher.Publish(ctx, []core.Event{core.NewEvent(id, "", core.EventResync, nil)})
	_, err = s.Store.Answers(ctx, marks, false)
	return err
}
