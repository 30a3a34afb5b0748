package repositories

import (
	"context"
	"encoding/json"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// ApplyContext stores what a compaction decided, if nobody else compacted the
// session since its prompt revision was change.Expect; otherwise it stores
// nothing and returns core.ErrStale. Messages that were appended meanwhile do not
// matter.
//
// A summary gets the session's next version number. Older versions stay with their
// content; the one that was active is only marked as dropped, and so is one that was
// prepared: it extends another than the new one. A summary that is prepared changes
// neither the prompt state nor the revision. The number of what comes into use is
// put into the version of context.completed events.
//
// ErrStale, too, when the version to be activated is not the prepared one any more.
func (r *Sessions) ApplyContext(ctx context.Context, scope core.Scope, change core.ContextChange) (core.Session, []core.Event, error) {
	id := change.SessionID
	var j *journal
	err := inTx(ctx, r.db, func(tx *gorm.DB) (err error) {
		if j, err = lockSession(tx, id, visible(scope)); err != nil {
			return err
		}
		if j.session.PromptRevision != change.Expect {
			return core.Errorf(core.ErrStale, "session %s was compacted by somebody else; load it again", id)
		}
		version, err := j.take(change)
		if err != nil {
			return err
		}
		j.judge(change)
		j.emit(withVersion(change.Events, version)...)
		if err := j.book(change.ModelCalls, ""); err != nil {
			return err
		}
		return j.close()
	})
	if err != nil {
		return core.Session{}, nil, failure(err, "session", id)
	}
	return j.session.Core(), j.events, nil
}

// take does what the change says of the session's summary, and returns the version
// that is new; 0 = none is.
func (j *journal) take(change core.ContextChange) (int, error) {
	if s := change.Summary; s != nil && s.State == core.SummaryPrepared {
		return j.prepare(*s)
	}
	j.revise(change.PromptState)
	switch {
	case change.Activate > 0:
		return change.Activate, j.activatePrepared(change.Activate)
	case change.Summary != nil:
		return j.activate(*change.Summary)
	}
	return 0, nil
}

// revise raises the prompt revision and, unless it is empty, sets the state.
func (j *journal) revise(state []byte) {
	j.session.PromptRevision++
	j.changes["prompt_revision"] = j.session.PromptRevision
	if len(state) > 0 {
		j.session.PromptState = models.JSON(state)
		j.changes["prompt_state"] = j.session.PromptState
	}
}

// activate stores the next version of the summary and returns its number.
func (j *journal) activate(s core.Summary) (int, error) {
	s, err := j.numbered(s)
	if err != nil {
		return 0, err
	}
	now := core.Now()
	s.State, s.ActivatedAt = core.SummaryActive, &now
	if s.Kind == core.SummaryRolling {
		if err := j.succeed(s); err != nil {
			return 0, err
		}
	}
	if err := j.dropLoops(s); err != nil {
		return 0, err
	}
	row := models.SummaryFrom(s)
	if err := insert(j.tx, &row); err != nil {
		return 0, failure(err, "summary", s.ID)
	}
	j.countSummary()
	return s.Version, nil
}

// succeed drops the summary in use, and what was prepared to extend it, and makes
// this one the session's own.
func (j *journal) succeed(s core.Summary) error {
	err := j.tx.Model(&models.Summary{}).Scopes(activeOf(j.session.ID)).UpdateColumn("state", core.SummaryDropped).Error
	if err == nil {
		err = j.dropPrepared()
	}
	j.adopt(s)
	return err
}

// countSummary counts a summary that has come into use.
func (j *journal) countSummary() {
	j.session.SummaryCount++
	j.changes["summary_count"] = j.session.SummaryCount
}

// numbered gives a summary the session's next version and what it lacks.
func (j *journal) numbered(s core.Summary) (core.Summary, error) {
	var last int
	err := j.tx.Model(&models.Summary{}).Select("COALESCE(MAX(version), 0)").
		Where("session_id = ?", j.session.ID).Scan(&last).Error
	s.SessionID, s.Owner, s.Version = core.SessionID(j.session.ID), j.session.Owner, last+1
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

// adopt makes the summary the session's own (W2).
func (j *journal) adopt(s core.Summary) {
	row := &j.session
	row.ConversationSummary, row.SummaryThroughID, row.SummaryThroughSeq = &s.Content, models.Ref(s.ThroughID), s.ThroughSeq
	row.SummaryVersion, row.SummaryTokens, row.SummarizedCount = s.Version, s.TokenCount, s.MessagesCovered
	row.LastSummarizedAt = s.ActivatedAt
	j.changes["conversation_summary"] = s.Content
	j.changes["summary_through_id"] = row.SummaryThroughID
	j.changes["summary_through_seq"] = s.ThroughSeq
	j.changes["summary_version"] = s.Version
	j.changes["summary_tokens"] = s.TokenCount
	j.changes["summarized_count"] = s.MessagesCovered
	j.changes["last_summarized_at"] = s.ActivatedAt
}

// withVersion returns the events with the version put into the data of
// context.completed: nobody knows the number before the session is locked.
func withVersion(events []core.Event, version int) []core.Event {
	if version == 0 {
		return events
	}
	out := make([]core.Event, 0, len(events))
	for _, e := range events {
		var data map[string]any
		if e.Type == core.EventContextCompleted && json.Unmarshal(e.Data, &data) == nil && data != nil {
			data["version"] = version
			at := e.At
			e = core.NewEvent(e.SessionID, e.RunID, e.Type, data)
			e.At = at
		}
		out = append(out, e)
	}
	return out
}
