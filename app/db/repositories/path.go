package repositories

import (
	"database/sql"
	"fmt"
	"math"
	"slices"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// The log of a session is a tree: each message has the one before it as its
// parent. The current path (on_path) is the way from a root to one leaf, so the
// seq of its messages rises. What a summary covers is the way to its last message:
// it is valid on every path that this message is on.

// node is a message's place in the tree.
type node struct {
	ID     models.Ref
	Seq    int64
	OnPath bool
}

// tree returns the transaction for questions that walk the tree, from row to row by
// an index. PostgreSQL cannot know how long a walk is: it may take it for short and
// read the whole table at each step.
func (j *journal) tree() *gorm.DB {
	if isPostgres(j.tx) {
		const byIndex = "SELECT set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true), set_config('enable_seqscan', 'off', true)"
		j.tx.Exec(byIndex) // when it fails the transaction is broken, and the question fails, too
	}
	return j.tx
}

// branches reports whether the run begins elsewhere than where the path ends.
func branches(in core.AcceptRun) bool { return in.Input.Edits != "" || in.Answers != "" }

// busyError says that the path cannot change now.
func busyError(id string) error {
	return core.Errorf(core.ErrConflict, "session %s is busy: cancel its runs or wait for their end", id)
}

// resolve checks what a run on a branch of its own refers to, and finds the
// question that is to be answered anew.
func (j *journal) resolve(in core.AcceptRun) (core.AcceptRun, error) {
	switch {
	case in.Input.Edits != "":
		m, err := j.message(in.Input.Edits)
		if err == nil && m.Role != core.RoleUser {
			err = core.Errorf(core.ErrUnprocessable, "message %s is from the %s; only a user's message can be edited", m.ID, m.Role)
		}
		return in, err
	case in.Answers != "":
		m, err := j.message(in.Answers)
		if err != nil {
			return in, err
		}
		in.Input.Regenerate = true
		in.Answers, err = j.question(m)
		return in, err
	}
	return in, nil
}

// message returns a message of the session that was not deleted.
func (j *journal) message(id core.MessageID) (core.Message, error) {
	if err := known("message", id); err != nil {
		return core.Message{}, err
	}
	m, err := j.inLog(id)
	switch {
	case err != nil:
		return core.Message{}, err
	case m == nil:
		return core.Message{}, notFound("message", id)
	case m.DeletedAt != nil:
		return core.Message{}, core.Errorf(core.ErrNotFound, "message %s was deleted", id)
	}
	return *m, nil
}

const questionSQL = `WITH RECURSIVE up (id, parent_id, role, deleted_at) AS (
	SELECT id, parent_id, role, deleted_at FROM messages WHERE id = @m
	UNION ALL
	SELECT m.id, m.parent_id, m.role, m.deleted_at FROM messages m JOIN up ON m.id = up.parent_id WHERE up.role <> 'user')
SELECT id FROM up WHERE role = 'user' AND deleted_at IS NULL`

// question returns the user's message of the turn that m belongs to.
func (j *journal) question(m core.Message) (core.MessageID, error) {
	var ids []models.Ref
	if err := j.tree().Raw(questionSQL, sql.Named("m", m.ID)).Scan(&ids).Error; err != nil {
		return "", err
	}
	if len(ids) == 0 {
		return "", core.Errorf(core.ErrUnprocessable, "message %s answers no message of a user that is still there: nothing can be answered anew", m.ID)
	}
	return core.MessageID(ids[0]), nil
}

// branch makes the branch of a run that has just been started for the first time
// the current path, as far as it exists, and returns its last message. The path of
// other runs stays, and ends with last.
func (j *journal) branch(run core.Run, last core.MessageID) (core.MessageID, error) {
	if run.Attempt > 1 || run.Input.Edits == "" && !run.Input.Regenerate {
		return last, nil
	}
	c := change{run: run.ID, leaf: run.UserMessageID, why: "regenerate", before: math.MaxInt64}
	at := run.UserMessageID
	if run.Input.Edits != "" {
		at, c.why = run.Input.Edits, "edit"
	}
	m, err := j.inLog(at)
	if err != nil {
		return "", err
	}
	if m == nil { // it cannot have gone; a run that could not start would be worse
		return last, nil
	}
	if run.Input.Regenerate {
		c.before = m.Seq // the run's question is never covered
	} else {
		c.leaf = m.ParentID
	}
	return c.leaf, j.turnTo(c)
}

// change is a change of the current path.
type change struct {
	run    core.RunID     // that brings it about; empty = none
	leaf   core.MessageID // the last message of the new path; empty = the path is empty
	before int64          // the summary must end before this seq
	why    string         // the trigger of a summary that comes back
}

const branchSQL = `WITH RECURSIVE up (id, parent_id, seq, on_path) AS (
	SELECT id, parent_id, seq, on_path FROM messages WHERE id = @leaf
	UNION ALL
	SELECT m.id, m.parent_id, m.seq, m.on_path FROM messages m JOIN up ON m.id = up.parent_id WHERE NOT up.on_path)
SELECT id, seq, on_path FROM up ORDER BY seq`

// turnTo makes the way to c.leaf the current path, gives the session the summary
// that is valid there, and tells of it in a session.updated event. If both are so
// already it changes nothing.
func (j *journal) turnTo(c change) error {
	var way []node // the last message that both paths have, then those that the new one alone has
	if c.leaf != "" {
		if err := j.tree().Raw(branchSQL, sql.Named("leaf", c.leaf)).Scan(&way).Error; err != nil {
			return err
		}
	}
	var common node
	if len(way) > 0 && way[0].OnPath {
		common, way = way[0], way[1:]
	}
	off := j.tx.Model(&models.Message{}).Where("session_id = ? AND on_path AND seq > ?", j.session.ID, common.Seq).
		UpdateColumn("on_path", false)
	if off.Error != nil {
		return off.Error
	}
	for part := range slices.Chunk(way, maxIDs) {
		ids := make([]models.Ref, 0, len(part))
		for _, n := range part {
			ids = append(ids, n.ID)
		}
		if err := j.tx.Model(&models.Message{}).Where("id IN ?", ids).UpdateColumn("on_path", true).Error; err != nil {
			return err
		}
	}
	other := off.RowsAffected > 0 || len(way) > 0
	if err := j.dropPreparedFrom(c.before); err != nil {
		return err
	}
	if !other && j.session.SummaryThroughSeq < c.before {
		return nil
	}
	if err := j.fallBack(c.before, c.why); err != nil {
		return err
	}
	data := core.SessionData{}
	if other {
		data.Path = &core.PathChange{AfterID: core.MessageID(common.ID), LeafID: c.leaf}
	}
	j.touch()
	data.Session = j.session.Core()
	j.emit(core.NewEvent("", c.run, core.EventSessionUpdated, data))
	return nil
}

// maxIDs bounds the ids of one statement.
const maxIDs = 1000

const validSQL = `SELECT s.* FROM session_summaries s JOIN messages m ON m.id = s.through_id
WHERE s.session_id = @s AND s.kind = 'rolling' AND s.state IN ('active', 'dropped') AND s.activated_at IS NOT NULL AND m.on_path AND m.seq < @before
ORDER BY s.through_seq DESC, s.version DESC LIMIT 1`

// fallBack gives the session the newest version of its summary that ends on the
// current path, before the given seq: the one it has, an older one that is
// repeated as a new version, or none (CONTEXT § 7). The prompt state begins anew,
// with the notes on tool loops that are valid there, and whatever is being summarized
// meanwhile is stale.
func (j *journal) fallBack(before int64, why string) error {
	if err := j.fallBackTo(before, why); err != nil {
		return err
	}
	return j.resumeLoops(before)
}

func (j *journal) fallBackTo(before int64, why string) error {
	j.revise(nil)
	j.session.PromptState = nil
	j.changes["prompt_state"] = nil
	var valid []models.Summary
	err := j.tx.Raw(validSQL, sql.Named("s", j.session.ID), sql.Named("before", before)).Scan(&valid).Error
	switch {
	case err != nil:
		return err
	case len(valid) == 0:
		return j.forget()
	case valid[0].Version == j.session.SummaryVersion:
		return nil
	}
	_, err = j.activate(repeated(valid[0], why))
	return err
}

// repeated returns the version as one that is still to be stored (CONTEXT § 7).
func repeated(row models.Summary, why string) core.Summary {
	s := row.Core()
	s.ID, s.CreatedAt = "", core.Now()
	s.MessagesAdded, s.TokensBefore, s.TokensAfter, s.Duration = 0, s.TokenCount, s.TokenCount, 0
	s.Trigger, s.Note = why, fmt.Sprintf("repeats version %d", s.Version)
	return s
}

// forget leaves the session without a summary; its versions stay.
func (j *journal) forget() error {
	row := &j.session
	if row.SummaryVersion == 0 {
		return nil
	}
	if err := j.dropPrepared(); err != nil { // it extends what is forgotten
		return err
	}
	row.ConversationSummary, row.SummaryThroughID, row.SummaryThroughSeq = nil, "", 0
	row.SummaryVersion, row.SummaryTokens, row.SummarizedCount, row.LastSummarizedAt = 0, 0, 0, nil
	for column, value := range map[string]any{
		"conversation_summary": nil, "summary_through_id": nil, "summary_through_seq": 0, "summary_version": 0,
		"summary_tokens": 0, "summarized_count": 0, "last_summarized_at": nil,
	} {
		j.changes[column] = value
	}
	return j.tx.Model(&models.Summary{}).Scopes(activeOf(row.ID)).UpdateColumn("state", core.SummaryDropped).Error
}

// activeOf narrows a question about summaries to the one in use, as the index says it.
func activeOf(session string) func(*gorm.DB) *gorm.DB {
	return func(db *gorm.DB) *gorm.DB {
		return db.Where("session_id = ? AND kind = 'rolling' AND state = 'active'", session)
	}
}

// idle returns ErrConflict while the session has a run that is active or queued.
func (j *journal) idle() error {
	f, err := j.facts("", "")
	if err == nil && f.Active+f.Queued > 0 {
		err = busyError(j.session.ID)
	}
	return err
}
