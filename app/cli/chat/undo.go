package chat

import (
	"context"
	"errors"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
)

// undoneSummary is the result of restoreEarlier.
type undoneSummary struct {
	session core.Session // after the undo
	from    int          // the version that was active
	to      int          // the version that was restored; 0 = none
}

// restoreEarlier undoes the active summary: it restores the version that was active before it on
// this path, or none. The error is core.ErrUnprocessable if there is no active summary.
func restoreEarlier(ctx context.Context, c client.Caller, in ops.InSession) (undoneSummary, error) {
	session, err := client.Call(ctx, c, ops.GetSession, in)
	if err != nil {
		return undoneSummary{}, err
	}
	if session.SummaryVersion == 0 {
		return undoneSummary{}, core.Errorf(core.ErrUnprocessable, "there is no summary to undo")
	}
	out := undoneSummary{from: session.SummaryVersion}
	query := ops.SessionPage{InSession: in, PageQuery: core.PageQuery{Limit: core.MaxPageLimit}}
	for {
		page, err := client.Call(ctx, c, ops.ListSummaries, query)
		if err != nil {
			return undoneSummary{}, err
		}
		for _, s := range page.Items {
			if !isEarlierVersion(s, session.Session) {
				continue
			}
			out.to = s.Version
			out.session, err = client.Call(ctx, c, ops.RestoreSummary, ops.SummaryRestore{InSession: in, Version: s.Version})
			if !errors.Is(err, core.ErrUnprocessable) { // of another branch
				return out, err
			}
		}
		if page.NextCursor == nil {
			break
		}
		query.Cursor = *page.NextCursor
	}
	out.to = 0
	out.session, err = client.Call(ctx, c, ops.RestoreSummary, ops.SummaryRestore{InSession: in})
	return out, err
}

// isEarlierVersion reports whether the version may be the one that was active before the
// session's: not one that was undone, nor the one that the session's version repeats.
func isEarlierVersion(s core.Summary, session core.Session) bool {
	repeated := session.ConversationSummary != nil && s.Content == *session.ConversationSummary &&
		session.SummaryThroughID != nil && s.ThroughID == *session.SummaryThroughID
	return s.Version < session.SummaryVersion && s.Kind == core.SummaryRolling && s.State == core.SummaryDropped && s.ActivatedAt != nil && !repeated
}
