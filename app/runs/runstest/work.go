package runstest

import (
	"context"
	"time"

	"bobbin/app/core"
)

// SummaryWork returns what goes on with the session's summaries.
func (s Sessions) SummaryWork(ctx context.Context, scope core.Scope, id core.SessionID) (core.SummaryWork, error) {
	var w core.SummaryWork
	err := s.db.do(ctx, "SummaryWork", func() error {
		l, err := s.db.visible(scope, id)
		if err != nil {
			return err
		}
		w = core.SummaryWork{Revision: l.session.PromptRevision, Busy: l.summarizer != ""}
		if l.prepared > 0 {
			v := l.summaries[l.prepared-1]
			w.Prepared = core.PreparedSummary{ID: v.ID, Version: v.Version, ThroughSeq: v.ThroughSeq, Tokens: v.TokenCount, Messages: v.MessagesCovered}
		}
		return nil
	})
	return w, err
}

// SummaryFailed stores the events of a summary that was not made.
func (s Sessions) SummaryFailed(ctx context.Context, scope core.Scope, f core.SummaryFailure) ([]core.Event, error) {
	var events []core.Event
	err := s.db.do(ctx, "SummaryFailed", func() error {
		l, err := s.db.visible(scope, f.SessionID)
		if err != nil {
			return err
		}
		for _, e := range f.Events {
			l.emit(e)
		}
		events = l.fresh
		return nil
	})
	return events, err
}

// LeaseSummary lets one at a time make a summary. The lease does not end by itself.
func (s Sessions) LeaseSummary(ctx context.Context, scope core.Scope, id core.SessionID, holder string, _ time.Duration) (core.Grant, error) {
	got := core.GrantRefused
	err := s.db.do(ctx, "LeaseSummary", func() error {
		l, err := s.db.visible(scope, id)
		if err != nil {
			return err
		}
		if l.summarizer == "" || l.summarizer == holder {
			l.summarizer, got = holder, core.GrantGiven
		}
		return nil
	})
	return got, err
}

// FreeSummary ends the holder's lease.
func (s Sessions) FreeSummary(ctx context.Context, id core.SessionID, holder string) error {
	return s.db.do(ctx, "FreeSummary", func() error {
		if l := s.db.sessions[id]; l != nil && l.summarizer == holder {
			l.summarizer = ""
		}
		return nil
	})
}

// FreeSummaries does nothing: nobody dies here.
func (s Sessions) FreeSummaries(context.Context, string) error { return nil }
