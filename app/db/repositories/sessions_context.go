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
// A summary gets the session's next version number, which is put into the
// version of context.completed events too. Older versions stay with their
// content; the one that was active is only marked as dropped.
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
		j.revise(change.PromptState)
		events := change.Events
		if change.Summary != nil {
			version, err := j.activate(*change.Summary)
			if err != nil {
				return err
			}
			events = withVersion(events, version)
		}
		j.emit(events...)
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
	var last int
	err := j.tx.Model(&models.Summary{}).Select("COALESCE(MAX(version), 0)").
		Where("session_id = ?", j.session.ID).Scan(&last).Error
	if err != nil {
		return 0, err
	}
	s = j.numbered(s, last+1)
	if s.Kind == core.SummaryRolling {
		err := j.tx.Model(&models.Summary{}).
			Where("session_id = ? AND kind = 'rolling' AND state = 'active'", j.session.ID). // as the index says it
			UpdateColumn("state", core.SummaryDropped).Error
		if err != nil {
			return 0, err
		}
		j.adopt(s)
	}
	if err := j.dropLoops(s); err != nil {
		return 0, err
	}
	row := models.SummaryFrom(s)
	if err := insert(j.tx, &row); err != nil {
		return 0, failure(err, "summary", s.ID)
	}
	j.session.SummaryCount++
	j.changes["summary_count"] = j.session.SummaryCount
	return s.Version, nil
}

// numbered gives a summary its version and what it lacks.
func (j *journal) numbered(s core.Summary, version int) core.Summary {
	s.SessionID, s.Owner = core.SessionID(j.session.ID), j.session.Owner
	s.Version, s.State = version, core.SummaryActive
	if s.ID == "" {
		s.ID = core.NewID[core.SummaryID]()
	}
	if s.Kind == "" {
		s.Kind = core.SummaryRolling
	}
	if s.CreatedAt.IsZero() {
		s.CreatedAt = core.Now()
	}
	return s
}

// adopt makes the summary the session's own (W2).
func (j *journal) adopt(s core.Summary) {
	row := &j.session
	row.ConversationSummary, row.SummaryThroughID, row.SummaryThroughSeq = &s.Content, models.Ref(s.ThroughID), s.ThroughSeq
	row.SummaryVersion, row.SummaryTokens, row.SummarizedCount = s.Version, s.TokenCount, s.MessagesCovered
	row.LastSummarizedAt = &s.CreatedAt
	j.changes["conversation_summary"] = s.Content
	j.changes["summary_through_id"] = row.SummaryThroughID
	j.changes["summary_through_seq"] = s.ThroughSeq
	j.changes["summary_version"] = s.Version
	j.changes["summary_tokens"] = s.TokenCount
	j.changes["summarized_count"] = s.MessagesCovered
	j.changes["last_summarized_at"] = s.CreatedAt
}

// withVersion returns the events with the version put into the data of
// context.completed: nobody knows the number before the session is locked.
func withVersion(events []core.Event, version int) []core.Event {
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
