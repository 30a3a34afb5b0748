package repositories

import (
	"context"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
	"bobbin/app/db/commit"
	"bobbin/app/db/models"
)

// ApplyContext stores the result of a compaction if the session's prompt revision is still
// change.Expect; otherwise it stores nothing and returns core.ErrStale. Messages appended
// since then do not matter.
//
// A summary gets the session's next version number. Older versions keep their content; the
// active one is marked as dropped, and so is a prepared one, which extends an older
// summary. A prepared summary changes neither the prompt state nor the revision. The data
// of context.completed events gets the number of the version that becomes active.
//
// ErrStale also when the version to be activated can no longer be used.
func (r *Sessions) ApplyContext(ctx context.Context, tenant core.Tenant, change core.ContextChange) (core.Session, []core.Event, error) {
	id := change.SessionID
	var session core.Session
	events, err := changeOnce(ctx, r.db, id, func(stx *sessionTx) error {
		if stx.session.PromptRevision != change.Expect {
			return core.Errorf(core.ErrStale, "session %s was compacted by another process; load it again", change.SessionID)
		}
		version, err := stx.changeSummary(change)
		if err != nil {
			return err
		}
		if change.Setup != nil {
			if err := stx.storeSetup(*change.Setup); err != nil {
				return err
			}
		}
		switch {
		case change.Failure != "":
			stx.countFailure(change.Failure)
		case change.Summary != nil && change.Summary.Model != "" && stx.session.SummaryFailures > 0:
			stx.session.SummaryFailures, stx.session.SummaryFailure, stx.session.SummaryBreakerUntil = 0, "", nil
		}
		stx.emitEvents(conversation.WithVersion(change.Events, version)...)
		if change.Summary != nil {
			stx.result = string(change.Summary.ID)
		}
		err = stx.recordCalls(change.ModelCalls, "")
		session = stx.session.Core()
		return err
	}, visibleTo(tenant))
	if err == nil && session.ID == "" { // an earlier execution of the request has committed it
		session, err = r.Get(ctx, tenant, id)
	}
	return session, events, err
}

// changeSummary applies the change to the session's summary, and returns the new version; 0
// = none.
func (stx *sessionTx) changeSummary(change core.ContextChange) (int, error) {
	if s := change.Summary; s != nil && s.State == core.SummaryPrepared {
		return stx.prepareSummary(*s)
	}
	stx.raiseRevision(change.PromptState)
	switch {
	case change.Activate != nil:
		return *change.Activate, stx.useVersion(*change.Activate)
	case change.Summary != nil:
		return stx.activateSummary(*change.Summary)
	case change.Refused != "":
		if stx.session.NativeSummary == nil {
			return 0, nil
		}
		refused := *stx.session.NativeSummary
		refused.Refused, stx.session.NativeSummary = change.Refused, &refused
		return 0, stx.tx.Model(&core.Summary{}).Where(activeOf(stx.session.ID)).UpdateColumn("native", models.NativeFrom(&refused)).Error
	}
	return 0, nil
}

// raiseRevision increments the prompt revision and sets the prompt state unless it is
// empty.
func (stx *sessionTx) raiseRevision(state []byte) {
	stx.session.PromptRevision++
	if len(state) > 0 {
		stx.session.PromptState = state
	}
}

// activateSummary stores the next version of the summary and returns its number.
func (stx *sessionTx) activateSummary(s core.Summary) (int, error) {
	s, err := stx.withNextVersion(s)
	if err != nil {
		return 0, err
	}
	now := core.Now()
	s.State, s.ActivatedAt = core.SummaryActive, &now
	if s.Kind == core.SummaryRolling {
		if err := stx.replaceSummary(s); err != nil {
			return 0, err
		}
	}
	if err := stx.dropLoops(s); err != nil {
		return 0, err
	}
	if err := commit.Insert(stx.tx, &s); err != nil {
		return 0, wrapError(err, "summary", s.ID)
	}
	stx.session.SummaryCount++
	addBytes(stx, 1, []core.Summary{s})
	return s.Version, nil
}

// replaceSummary drops the active summary and the prepared one, and makes s the session's
// summary.
func (stx *sessionTx) replaceSummary(s core.Summary) error {
	err := stx.tx.Model(&core.Summary{}).Where(activeOf(stx.session.ID)).UpdateColumn("state", core.SummaryDropped).Error
	if err == nil {
		err = stx.dropPrepared()
	}
	row := &stx.session
	row.ConversationSummary, row.SummaryThroughID, row.SummaryThroughSeq = &s.Content, &s.ThroughID, s.ThroughSeq
	row.SummaryVersion, row.SummaryTokens, row.SummarizedCount = s.Version, s.TokenCount, s.MessagesCovered
	row.SummaryCovered, row.SummaryMadeFor, row.LastSummarizedAt = s.TokensCovered, s.MadeFor, s.ActivatedAt
	row.NativeSummary = s.Native
	return err
}

// withNextVersion fills in the session's next version and the missing fields of a summary.
func (stx *sessionTx) withNextVersion(s core.Summary) (core.Summary, error) {
	last, err := scan[int](stx.tx.Model(&core.Summary{}).Select("COALESCE(MAX(version), 0)").
		Where("session_id = ?", stx.session.ID))
	s.SessionID, s.Owner, s.Version = stx.session.ID, stx.session.Owner, last+1
	if s.ID == "" {
		s.ID = core.NewID[core.SummaryID]()
	}
	if s.Kind == "" {
		s.Kind = core.SummaryRolling
	}
	if s.CreatedAt.IsZero() {
		s.CreatedAt = core.Now()
	}
	return s, err
}
