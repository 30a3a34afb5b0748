package openai

import (
	"context"

	"bobbin/app/core"
)

// readResponse returns the response as it is now. It does not wait for anything.
func (a *API) readResponse(ctx context.Context, tenant core.Tenant, b activeRun, shape *responseShape, session core.Session) (responseShape, error) {
	enc := newResponseEncoder(shape, b.run.ID, -1)
	from := max(b.from.After, b.run.FirstEvent-1)
	if from >= session.LastEventSeq { // nothing has happened yet
		return shape.unfinished(b.run), nil
	}
	for e, err := range a.Chat.Watch(ctx, tenant, session.ID, core.Cursor{After: from}) {
		if err != nil {
			return responseShape{}, err
		}
		if e.RunID == b.run.ID {
			if _, err := enc.encode(nil, e); err != nil {
				return responseShape{}, err
			}
		}
		switch {
		case enc.ended:
			return enc.final, nil
		case e.Type == core.EventResync && b.run.Status.Ended():
			return responseShape{}, core.Errorf(core.ErrNotFound, "the events of the response %s are no longer kept; read the items of its conversation", shape.ID)
		case e.Seq >= session.LastEventSeq:
			return shape.unfinished(b.run), nil
		}
	}
	return shape.unfinished(b.run), context.Cause(ctx)
}
