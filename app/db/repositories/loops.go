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
	"bobbin/app/db/models"
)

// The notes on tool loops are summaries of kind run. Which of them are in use the
// prompt state of their session says; the state of their rows says the same: active
// until the rolling summary has passed them, or later notes cover them.

// Find returns the summaries of a session with these ids, whatever their state; what
// is not there is left out.
func (r *Summaries) Find(ctx context.Context, scope core.Scope, id core.SessionID, ids []core.SummaryID) ([]core.Summary, error) {
	if err := known("session", id); err != nil {
		return nil, err
	}
	var rows []models.Summary
	err := r.db.WithContext(ctx).Scopes(within(scope, id)).Where("id IN ?", ids).Order("version").Find(&rows).Error
	if err != nil {
		return nil, failure(err, "session", id)
	}
	return values(rows, sure(models.Summary.Core))
}

// Loops returns the notes on tool loops of the conversation that stand behind the seq:
// for each loop the newest whose messages are all on the current path.
func (r *Summaries) Loops(ctx context.Context, scope core.Scope, id core.SessionID, after int64) ([]core.Summary, error) {
	if err := known("session", id); err != nil {
		return nil, err
	}
	db := r.db.WithContext(ctx)
	if err := mustSee(db, scope, id); err != nil {
		return nil, err
	}
	rows, err := validLoops(db, string(id), after, math.MaxInt64)
	if err != nil {
		return nil, failure(err, "session", id)
	}
	return values(rows, sure(models.Summary.Core))
}

const validLoopsSQL = `SELECT s.* FROM session_summaries s JOIN messages m ON m.id = s.through_id
WHERE s.session_id = @s AND s.kind = 'run' AND s.state IN ('active', 'dropped') AND s.from_seq > @after AND s.through_seq < @before AND m.on_path
ORDER BY s.from_seq, s.through_seq DESC, s.version DESC`

// validLoops returns the notes between the seqs, in order. A run's messages follow
// each other, so the last of a range is on the path with all others.
func validLoops(db *gorm.DB, session string, after, before int64) ([]models.Summary, error) {
	var rows []models.Summary
	err := db.Raw(validLoopsSQL, sql.Named("s", session), sql.Named("after", after), sql.Named("before", before)).Scan(&rows).Error
	return longest(rows), err
}

// longest returns the first of the notes that overlap.
func longest(rows []models.Summary) []models.Summary {
	through := int64(0)
	return slices.DeleteFunc(rows, func(s models.Summary) bool {
		inside := s.FromSeq <= through
		through = max(through, s.ThroughSeq)
		return inside
	})
}

// dropLoops takes out of use the notes that a summary takes over: a rolling one those
// that the cursor has passed, notes the earlier ones of the same loop.
func (j *journal) dropLoops(s core.Summary) error {
	which := j.loopsInUse().Where("through_seq <= ?", s.ThroughSeq)
	if s.Kind == core.SummaryRun {
		which = which.Where("from_seq >= ?", s.FromSeq)
	}
	return which.UpdateColumn("state", core.SummaryDropped).Error
}

func (j *journal) loopsInUse() *gorm.DB {
	return j.tx.Model(&models.Summary{}).Where("session_id = ? AND kind = 'run' AND state = 'active'", j.session.ID)
}

// resumeLoops puts the notes to use that are valid between the cursor and the seq,
// after the path or the cursor has changed: the long versions do not come back. Those
// of messages that were deleted are gone.
func (j *journal) resumeLoops(before int64) error {
	rows, err := validLoops(j.tx, j.session.ID, j.session.SummaryThroughSeq, before)
	if err != nil {
		return err
	}
	ids := make([]string, 0, len(rows))
	for _, s := range rows {
		ids = append(ids, s.ID)
	}
	gone := j.loopsInUse()
	if len(ids) > 0 {
		gone = gone.Where("id NOT IN ?", ids)
	}
	if err := gone.UpdateColumn("state", core.SummaryDropped).Error; err != nil {
		return err
	}
	if len(ids) > 0 {
		if err := j.tx.Model(&models.Summary{}).Where("id IN ?", ids).UpdateColumn("state", core.SummaryActive).Error; err != nil {
			return err
		}
	}
	return j.useLoops(rows)
}

// useLoops writes which notes are in use into the prompt state.
func (j *journal) useLoops(rows []models.Summary) error {
	state, err := contextwindow.DecodeState(j.session.PromptState)
	if err != nil || len(state.Loops)+len(rows) == 0 {
		return err
	}
	state.Loops = nil
	for _, s := range rows {
		state.Loops = append(state.Loops, contextwindow.LoopRange{
			ID: core.SummaryID(s.ID), From: s.FromSeq, Through: s.ThroughSeq, Tokens: s.TokenCount,
		})
	}
	j.session.PromptState = models.JSON(state.Encode())
	j.changes["prompt_state"] = j.session.PromptState
	return nil
}

const forkLoopsSQL = wayCTE + `SELECT * FROM session_summaries
WHERE session_id = @s AND kind = 'run' AND state IN ('active', 'dropped') AND through_id IN (SELECT id FROM up)
ORDER BY from_seq, through_seq DESC, version DESC`

// copyLoops gives the copy the notes of the source on the way to the leaf, behind what
// its summary covers.
func (j *journal) copyLoops(source *journal, leaf models.Ref) error {
	if leaf == "" {
		return nil
	}
	var found, rows []models.Summary
	err := j.tree().Raw(forkLoopsSQL, sql.Named("leaf", leaf), sql.Named("s", source.session.ID)).Scan(&found).Error
	if err != nil {
		return err
	}
	for _, row := range longest(found) {
		s, err := j.copyOf(row, source)
		if err != nil {
			return err
		}
		if s.FromSeq <= j.session.SummaryThroughSeq {
			continue
		}
		if _, err := j.activate(s); err != nil {
			return err
		}
		rows = append(rows, models.SummaryFrom(s))
	}
	return j.useLoops(rows)
}

// copyOf returns the notes as they are of the copies of their messages.
func (j *journal) copyOf(row models.Summary, source *journal) (core.Summary, error) {
	var ends []models.Message
	err := j.tx.Select("id, seq").Where("session_id = ? AND origin_id IN ?", j.session.ID, []models.Ref{row.FromID, row.ThroughID}).
		Order("seq").Find(&ends).Error
	if err == nil && len(ends) != 2 {
		err = fmt.Errorf("the messages of notes %s were not copied", row.ID)
	}
	if err != nil {
		return core.Summary{}, err
	}
	s := repeatedOf(row, source)
	s.ID = core.NewID[core.SummaryID]()
	s.FromID, s.FromSeq, s.ThroughID, s.ThroughSeq = core.MessageID(ends[0].ID), ends[0].Seq, core.MessageID(ends[1].ID), ends[1].Seq
	return s, nil
}

// repeatedOf returns a summary of another session as one that is still to be stored.
func repeatedOf(row models.Summary, source *journal) core.Summary {
	s := row.Core()
	s.ID, s.CreatedAt = "", core.Now()
	s.TokensBefore, s.TokensAfter, s.Duration = s.TokenCount, s.TokenCount, 0
	s.Trigger, s.Note = "fork", fmt.Sprintf("repeats version %d of session %s", s.Version, source.session.ID)
	return s
}
