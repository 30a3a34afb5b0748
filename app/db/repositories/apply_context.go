package repositories

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
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

// Notes on tool loops are summaries of kind run. The session's prompt state says which of
// them are in use, and so does the state of their rows: active until the rolling summary
// has passed them, or later notes cover them.

// Find returns the summaries of a session with these ids, whatever their state; missing
// ones are left out.
func (r *Summaries) Find(ctx context.Context, tenant core.Tenant, id core.SessionID, ids []core.SummaryID) ([]core.Summary, error) {
	list, err := findRows[core.Summary](byID(ctx, r.db, "session", id).Where(withinSession(tenant, id)).Where("id IN ?", ids).Order("version"))
	return list, wrapError(err, "session", id)
}

// Loops returns the notes on tool loops of the conversation after the seq: for each loop
// the newest whose messages are all on the current path.
func (r *Summaries) Loops(ctx context.Context, tenant core.Tenant, id core.SessionID, after int64) ([]core.Summary, error) {
	db := byID(ctx, r.db, "session", id)
	if err := requireVisible(db, tenant, id); err != nil {
		return nil, err
	}
	rows, err := validLoops(db, id, ownThrough, after, math.MaxInt64)
	return rows, wrapError(err, "session", id)
}

const validLoopsSQL = `SELECT s.* FROM session_summaries s JOIN messages m ON %s
WHERE s.session_id = @s AND s.kind = 'run' AND s.state IN ('active', 'dropped') AND s.from_seq > @after AND s.through_seq < @before AND m.on_path
ORDER BY s.from_seq, s.through_seq DESC, s.version DESC`

// validLoops returns the notes between the seqs, in order. A run's messages are
// consecutive, so if the last message of a range is on the path, all of them are.
func validLoops(db *gorm.DB, session core.SessionID, through string, after, before int64) ([]core.Summary, error) {
	rows, err := scan[[]core.Summary](db.Raw(fmt.Sprintf(validLoopsSQL, through), sql.Named("s", session), sql.Named("after", after), sql.Named("before", before)))
	last := int64(0)
	return slices.DeleteFunc(rows, func(s core.Summary) bool { // of overlapping ones the first stays
		inside := s.FromSeq <= last
		last = max(last, s.ThroughSeq)
		return inside
	}), err
}

// dropLoops drops the notes that a summary replaces: a rolling one those that its cursor
// has passed, notes the earlier ones of the same loop.
func (stx *sessionTx) dropLoops(s core.Summary) error {
	which := stx.loopsInUse().Where("through_seq <= ?", s.ThroughSeq)
	if s.Kind == core.SummaryRun {
		which = which.Where("from_seq >= ?", s.FromSeq)
	}
	return which.UpdateColumn("state", core.SummaryDropped).Error
}

func (stx *sessionTx) loopsInUse() *gorm.DB {
	return stx.tx.Model(&core.Summary{}).Where("session_id = ? AND kind = 'run' AND state = 'active'", stx.session.ID)
}

// resumeLoops activates the notes that are valid between the cursor and the seq after the
// path or the cursor has changed, so that the full messages stay out of the prompt. Notes
// with deleted messages stay erased.
func (stx *sessionTx) resumeLoops(before int64) error {
	rows, err := validLoops(stx.tx, stx.session.ID, ownThrough, stx.session.SummaryThroughSeq, before)
	if err != nil {
		return err
	}
	ids := idsOf(rows, func(s core.Summary) core.SummaryID { return s.ID })
	gone := stx.loopsInUse()
	if len(ids) > 0 {
		gone = gone.Where("id NOT IN ?", ids)
	}
	if err := gone.UpdateColumn("state", core.SummaryDropped).Error; err != nil {
		return err
	}
	if len(ids) > 0 {
		if err := stx.tx.Model(&core.Summary{}).Where("id IN ?", ids).UpdateColumn("state", core.SummaryActive).Error; err != nil {
			return err
		}
	}
	return stx.useLoops(rows)
}

// useLoops writes the notes in use into the prompt state.
func (stx *sessionTx) useLoops(rows []core.Summary) error {
	state, err := contextwindow.DecodeState(stx.session.PromptState)
	if err != nil || len(state.Loops)+len(rows) == 0 {
		return err
	}
	state.Loops = nil
	for _, s := range rows {
		state.Loops = append(state.Loops, contextwindow.LoopRangeOf(s))
	}
	stx.session.PromptState = state.Encode()
	return nil
}

// copyLoops copies the source's notes on copied messages that the fork's summary does not
// cover.
func (stx *sessionTx) copyLoops(source *sessionTx, copies map[core.MessageID]messageCopy) error {
	found, err := validLoops(stx.tx, source.session.ID, copiedThrough(stx), 0, math.MaxInt64)
	if err != nil {
		return err
	}
	var rows []core.Summary
	for _, row := range found {
		from, through := copies[row.FromID], copies[row.ThroughID]
		if from.seq == 0 {
			return fmt.Errorf("the messages of notes %s were not copied", row.ID)
		}
		s := repeatVersion(row, "fork", " of session "+string(source.session.ID))
		s.ID, s.MessagesAdded = core.NewID[core.SummaryID](), row.MessagesAdded
		s.FromID, s.FromSeq, s.ThroughID, s.ThroughSeq = from.id, from.seq, through.id, through.seq
		if s.FromSeq <= stx.session.SummaryThroughSeq {
			continue
		}
		if _, err := stx.activateSummary(s); err != nil {
			return err
		}
		rows = append(rows, s)
	}
	return stx.useLoops(rows)
}
