package purge

import (
	"context"
	"errors"

	"bobbin/app/core"
)

// Expired removes sessions that were kept long enough, and returns how many. One that is
// gone already, or that a run is at work in, is passed by. The bytes stay in the
// database's files until their space is used again.
func (s *Service) Expired(ctx context.Context, ids []core.SessionID) (int, error) {
	marks := core.PurgeMarks{IDs: marksOf(ids)}
	if err := s.markBlobs(ctx, &marks, ids, "", ""); err != nil {
		return 0, err
	}
	removed := 0
	for _, id := range ids {
		_, err := s.Store.Session(ctx, id, false)
		switch {
		case isNotFound(err), errors.Is(err, core.ErrConflict):
			delete(marks.IDs, string(id))
			continue
		case err != nil:
			return removed, cutOff(err, core.Purged{Removed: map[string]int64{"sessions": int64(removed)}})
		}
		removed++
		s.Publisher.Publish(ctx, []core.Event{core.NewEvent(id, "", core.EventResync, struct{}{})})
	}
	if removed == 0 {
		return 0, nil
	}
	_, err := s.Store.Answers(ctx, marks, false)
	return removed, err
}
