package compaction_test

import (
	"context"
	"strings"
	"time"

	"bobbin/app/core"
)

// What goes on with the summaries of the session in memory: the lease, the breaker and
// what is prepared, by the clock of the test.

// SummaryWork is Sessions.SummaryWork.
func (s *store) SummaryWork(_ context.Context, scope core.Scope, id core.SessionID) (w core.SummaryWork, err error) {
	err = s.at("SummaryWork", func() error {
		w = core.SummaryWork{Revision: s.session.PromptRevision, Busy: time.Now().Before(s.lease.until), Breaker: s.breaker}
		if until := s.breaker.Until; until != nil && !time.Now().Before(*until) {
			w.Breaker.Until = nil
		}
		for _, v := range s.summaries {
			if v.State == core.SummaryPrepared {
				w.Prepared = core.PreparedSummary{ID: v.ID, Version: v.Version, ThroughSeq: v.ThroughSeq, Tokens: v.TokenCount, Messages: v.MessagesCovered}
			}
		}
		return s.knows(scope, id)
	})
	return w, err
}

// SummaryFailed is Sessions.SummaryFailed.
func (s *store) SummaryFailed(_ context.Context, scope core.Scope, f core.SummaryFailure) (events []core.Event, err error) {
	err = s.at("SummaryFailed", func() error {
		if f.Reason != "" {
			s.blame(f.Reason)
		}
		s.calls = append(s.calls, f.ModelCalls...)
		events = s.number(f.Events)
		return s.knows(scope, f.SessionID)
	})
	return events, err
}

// judge counts a failure or forgets them. The caller holds the lock.
func (s *store) judge(c core.ContextChange) {
	switch {
	case c.Failure != "":
		s.blame(c.Failure)
	case c.Summary != nil && c.Summary.Model != "":
		s.breaker = core.Breaker{}
	}
}

// blame counts a failure. The caller holds the lock.
func (s *store) blame(reason string) {
	s.breaker.Failures++
	s.breaker.Reason = reason
	if s.breaker.Failures >= core.BreakerFailures {
		until := time.Now().Add(core.BreakerTime)
		s.breaker.Until = &until
	}
}

// LeaseSummary is Sessions.LeaseSummary.
func (s *store) LeaseSummary(_ context.Context, scope core.Scope, id core.SessionID, holder string, d time.Duration) (got core.Grant, err error) {
	err = s.at("LeaseSummary", func() error {
		switch {
		case s.lease.holder == "" || s.lease.holder == holder:
			got = core.GrantGiven
		case !time.Now().Before(s.lease.until):
			got = core.GrantTakenOver
		default:
			s.waited++
		}
		if got.OK() {
			s.lease = lease{holder, time.Now().Add(d)}
		}
		return s.knows(scope, id)
	})
	return got, err
}

// FreeSummary is Sessions.FreeSummary.
func (s *store) FreeSummary(_ context.Context, _ core.SessionID, holder string) error {
	return s.at("FreeSummary", func() error {
		if s.lease.holder == holder {
			s.lease = lease{}
		}
		return nil
	})
}

// FreeSummaries is Sessions.FreeSummaries.
func (s *store) FreeSummaries(_ context.Context, prefix string) error {
	return s.at("FreeSummaries", func() error {
		if strings.HasPrefix(s.lease.holder, prefix) {
			s.lease = lease{}
		}
		return nil
	})
}
