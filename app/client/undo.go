package client

import (
	"context"
	"errors"

	"bobbin/app/core"
)

// Undone is what UndoSummary did.
type Undone struct {
	Session core.Session // as it is now
	From    int          // the version that was in use
	To      int          // the version that is repeated; 0 = nothing is summarized any more
}

// UndoSummary takes the summary in use back: it restores the version that was in use
// before it on this path, or none. The error is core.ErrUnprocessable if nothing is
// summarized.
func (c *Client) UndoSummary(ctx context.Context, id core.SessionID) (Undone, error) {
	session, err := c.Session(ctx, id)
	if err != nil {
		return Undone{}, err
	}
	if session.SummaryVersion == 0 {
		return Undone{}, core.Errorf(core.ErrUnprocessable, "there is no summary that could be taken back")
	}
	out := Undone{From: session.SummaryVersion}
	query := core.PageQuery{Limit: core.MaxPageLimit}
	for {
		page, err := c.Summaries(ctx, id, query)
		if err != nil {
			return Undone{}, err
		}
		for _, s := range page.Items {
			if !before(s, session) {
				continue
			}
			out.To = s.Version
			out.Session, err = c.RestoreSummary(ctx, id, s.Version)
			if !errors.Is(err, core.ErrUnprocessable) { // of another branch
				return out, err
			}
		}
		if page.NextCursor == nil {
			break
		}
		query.Cursor = *page.NextCursor
	}
	out.To = 0
	out.Session, err = c.RestoreSummary(ctx, id, 0)
	return out, err
}

// before reports whether the version may be the one that was in use before the
// session's: not one that was taken back already, nor what the session's repeats.
func before(s core.Summary, session core.Session) bool {
	repeated := session.ConversationSummary != nil && s.Content == *session.ConversationSummary &&
		session.SummaryThroughID != nil && s.ThroughID == *session.SummaryThroughID
	return s.Version < session.SummaryVersion && s.Kind == core.SummaryRolling && s.State == core.SummaryDropped && s.ActivatedAt != nil && !repeated
}
