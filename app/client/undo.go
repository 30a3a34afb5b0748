package client

import (
	"context"
	"errors"

	"bobbin/app/core"
)

// UndoneSummary is the result of UndoSummary.
type UndoneSummary struct {
	Session core.Session // after the undo
	From    int          // the version that was active
	To      int          // the version that was restored; 0 = none
}

// UndoSummary undoes the active summary: it restores the version that was active before it on
// this path, or none. The error is core.ErrUnprocessable if there is no active summary.
func (c *Client) UndoSummary(ctx context.Context, id core.SessionID) (UndoneSummary, error) {
	session, err := c.Session(ctx, id)
	if err != nil {
		return UndoneSummary{}, err
	}
	if session.SummaryVersion == 0 {
		return UndoneSummary{}, core.Errorf(core.ErrUnprocessable, "there is no summary to undo")
	}
	out := UndoneSummary{From: session.SummaryVersion}
	query := core.PageQuery{Limit: core.MaxPageLimit}
	for {
		page, err := c.Summaries(ctx, id, query)
		if err != nil {
			return UndoneSummary{}, err
		}
		for _, s := range page.Items {
			if !isEarlierVersion(s, session) {
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

// isEarlierVersion reports whether the version may be the one that was active before the
// session's: not one that was undone, nor the one that the session's version repeats.
func isEarlierVersion(s core.Summary, session core.Session) bool {
	repeated := session.ConversationSummary != nil && s.Content == *session.ConversationSummary &&
		session.SummaryThroughID != nil && s.ThroughID == *session.SummaryThroughID
	return s.Version < session.SummaryVersion && s.Kind == core.SummaryRolling && s.State == core.SummaryDropped && s.ActivatedAt != nil && !repeated
}
