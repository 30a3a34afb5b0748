package repositories

import (
	"database/sql"
	"fmt"
	"math"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
)

// The log of a session is a tree: the parent of each message is the one before it. The
// current path (on_path) leads from a root to one leaf, in ascending order of seq. A
// summary covers the path to its last message, so it is valid on every path that contains
// this message.

// pathNode is a message's position in the tree.
type pathNode struct {
	ID        core.MessageID
	Seq       int64
	Role      core.Role
	OnPath    bool
	DeletedAt *time.Time
}

func (n pathNode) id() core.MessageID { return n.ID }

const walkSQL = `WITH RECURSIVE walked (id, parent_id, seq, role, on_path, deleted_at) AS (
	SELECT id, parent_id, seq, role, on_path, deleted_at FROM messages WHERE id IN @of
	UNION
	SELECT m.id, m.parent_id, m.seq, m.role, m.on_path, m.deleted_at FROM messages m JOIN walked ON %s)
SELECT id, seq, role, on_path, deleted_at FROM walked ORDER BY seq`

// The steps of a walk from a message walked to the next one, m.
const (
	toParent   = "m.id = walked.parent_id"
	toChildren = "m.parent_id = walked.id"
	toQuestion = toParent + " AND walked.role <> 'user'"
)

// walkTree returns the messages and those to which the steps lead from them, in the order of their seq. It goes row by row
// through an index. PostgreSQL cannot know how long a walk is: it may consider it short and scan the
// table at each step.
func walkTree(tx *gorm.DB, step string, of ...core.MessageID) ([]pathNode, error) {
	if isPostgres(tx) {
		const byIndex = "SELECT set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true), set_config('enable_seqscan', 'off', true)"
		tx.Exec(byIndex) // a failure aborts the transaction, so the query fails, too
	}
	return scan[[]pathNode](tx.Raw(fmt.Sprintf(walkSQL, step), sql.Named("of", of)))
}

// resolveBranch checks the message that a run on a branch of its own refers to, and finds
// the question to regenerate an answer for.
func (stx *sessionTx) resolveBranch(in core.AcceptRun) (core.AcceptRun, error) {
	switch {
	case in.Input.Edits != "":
		m, err := stx.findMessage(in.Input.Edits)
		if err == nil && m.Role != core.RoleUser {
			err = core.Errorf(core.ErrUnprocessable, "message %s is from the %s; only a user's message can be edited", m.ID, m.Role)
		}
		return in, err
	case in.After != "":
		in.Input.After = in.After
		if in.After == core.AfterStart {
			return in, nil
		}
		m, err := stx.findMessage(in.After)
		if err != nil || m.Role == core.RoleUser || m.Role == core.RoleSystem {
			return in, err
		}
		atom, err := stx.atomOf(in.After) // a tool call and its results are never separated
		if err == nil {
			in.Input.After = atom[len(atom)-1]
		}
		return in, err
	case in.Answers != "":
		m, err := stx.findMessage(in.Answers)
		if err != nil {
			return in, err
		}
		in.Input.Regenerate = true
		turn, err := walkTree(stx.tx, toQuestion, m.ID)
		if err == nil && (turn[0].Role != core.RoleUser || turn[0].DeletedAt != nil) {
			err = core.Errorf(core.ErrUnprocessable, "message %s does not answer an existing user message: there is nothing to regenerate", m.ID)
		}
		if err == nil {
			in.Answers = turn[0].ID
		}
		return in, err
	}
	return in, nil
}

// findMessage returns a message of the session that was not deleted.
func (stx *sessionTx) findMessage(id core.MessageID) (core.Message, error) {
	m, err := stx.findInLog(id)
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

// selectRunBranch makes the branch of a run that has just started for the first time the
// current path, as far as it exists, and returns its last message. Other runs keep the
// path, which ends with last.
func (stx *sessionTx) selectRunBranch(run core.Run, last core.MessageID) (core.MessageID, error) {
	if run.Attempt > 1 || run.Input.Edits == "" && run.Input.After == "" && !run.Input.Regenerate {
		return last, nil
	}
	if run.Input.After == core.AfterStart {
		return "", stx.switchPath(pathChange{run: run.ID, why: "after", before: math.MaxInt64})
	}
	c := pathChange{run: run.ID, leaf: run.UserMessageID, why: "regenerate", before: math.MaxInt64}
	at := run.UserMessageID
	switch {
	case run.Input.Edits != "":
		at, c.why = run.Input.Edits, "edit"
	case run.Input.After != "":
		at, c.leaf, c.why = run.Input.After, run.Input.After, "after"
	}
	m, err := stx.findInLog(at)
	if err != nil {
		return "", err
	}
	if m == nil { // impossible; a run that cannot start would be worse
		return last, nil
	}
	switch {
	case run.Input.Regenerate:
		c.before = m.Seq // the run's question is never covered
	case run.Input.Edits != "":
		c.leaf = m.ParentID
	}
	return c.leaf, stx.switchPath(c)
}

// pathChange is a change of the current path.
type pathChange struct {
	run    core.RunID     // the run that causes it; empty = none
	leaf   core.MessageID // the last message of the new path; empty = the path is empty
	before int64          // the summary must end before this seq
	why    string         // the trigger of a restored summary
}

// switchPath makes the path to c.leaf the current one, restores the summary that is valid
// there, and emits session.updated. If path and summary stay the same, it changes nothing.
func (stx *sessionTx) switchPath(c pathChange) error {
	var path []pathNode // the last message common to both paths, then those of the new one only
	if c.leaf != "" {
		var err error
		if path, err = walkTree(stx.tx, toParent+" AND NOT walked.on_path", c.leaf); err != nil {
			return err
		}
	}
	var common pathNode
	if len(path) > 0 && path[0].OnPath {
		common, path = path[0], path[1:]
	}
	off := stx.tx.Model(&core.Message{}).Where("session_id = ? AND on_path AND seq > ?", stx.session.ID, common.Seq).
		UpdateColumn("on_path", false)
	if off.Error != nil {
		return off.Error
	}
	for part := range slices.Chunk(path, maxIDs) {
		ids := idsOf(part, pathNode.id)
		if err := stx.tx.Model(&core.Message{}).Where("id IN ?", ids).UpdateColumn("on_path", true).Error; err != nil {
			return err
		}
	}
	isOther := off.RowsAffected > 0 || len(path) > 0
	if isOther {
		if _, err := stx.lockIndex(); err != nil {
			return err
		}
		moved := stx.tx.Exec(`UPDATE search_entries SET on_path = (SELECT m.on_path FROM messages m WHERE m.id = search_entries.message_id)
			WHERE message_id IN (SELECT id FROM messages WHERE session_id = ? AND seq > ?)
			AND on_path <> (SELECT m.on_path FROM messages m WHERE m.id = search_entries.message_id)`, stx.session.ID, common.Seq)
		if moved.Error != nil {
			return moved.Error
		}
	}
	// A prepared summary stays only if it ends on the path, before that seq.
	err := stx.tx.Model(&core.Summary{}).Where(preparedOf(stx.session.ID)).
		Where("through_seq >= ? OR NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = session_summaries.through_id AND m.on_path)", c.before).
		UpdateColumn("state", core.SummaryDropped).Error
	if err != nil {
		return err
	}
	if !isOther && stx.session.SummaryThroughSeq < c.before {
		return nil
	}
	if err := stx.fallBack(c.before, c.why); err != nil {
		return err
	}
	var changed *core.PathChange
	if isOther {
		changed = &core.PathChange{AfterID: common.ID, AfterSeq: common.Seq, LeafID: c.leaf}
	}
	stx.setUpdatedAt()
	return stx.emitSession(c.run, core.SessionData{Path: changed})
}

// maxIDs bounds the ids of one statement.
const maxIDs = 1000

const validSQL = `SELECT s.* FROM session_summaries s JOIN messages m ON %s
WHERE s.session_id = @s AND s.kind = 'rolling' AND s.state IN ('active', 'dropped') AND s.activated_at IS NOT NULL AND m.on_path AND m.seq < @before
ORDER BY s.through_seq DESC, s.version DESC LIMIT 1`

// ownThrough joins summaries s with their last messages m.
const ownThrough = "m.id = s.through_id"

// copiedThrough joins summaries s of the session that was forked with the copies m of their last messages.
func copiedThrough(fork *sessionTx) string {
	return "m.origin_id = s.through_id AND m.session_id = '" + string(fork.session.ID) + "'"
}

// newestValid returns the newest of the session's summaries whose last messages m are on a path, before the given seq; none if
// there is none.
func newestValid(tx *gorm.DB, session core.SessionID, through string, before int64) ([]core.Summary, error) {
	return scan[[]core.Summary](tx.Raw(fmt.Sprintf(validSQL, through), sql.Named("s", session), sql.Named("before", before)))
}

// fallBack gives the session the newest version of its summary that ends on the current
// path, before the given seq: the present one, an older one that becomes a new version, or
// none. The prompt state is reset, with the notes on tool loops that are valid there, and a
// summary in progress becomes stale.
func (stx *sessionTx) fallBack(before int64, why string) error {
	stx.raiseRevision(nil)
	stx.session.PromptState = nil
	valid, err := newestValid(stx.tx, stx.session.ID, ownThrough, before)
	switch {
	case err != nil:
	case len(valid) == 0:
		err = stx.clearSummary()
	case valid[0].Version != stx.session.SummaryVersion:
		_, err = stx.activateSummary(repeatVersion(valid[0], why, ""))
	}
	if err != nil {
		return err
	}
	return stx.resumeLoops(before)
}

// repeatVersion returns the version, of another session if one is named, as a new one that is not stored yet.
func repeatVersion(s core.Summary, why, of string) core.Summary {
	s.ID, s.CreatedAt = "", core.Now()
	s.MessagesAdded, s.TokensBefore, s.TokensAfter, s.Duration = 0, s.TokenCount, s.TokenCount, 0
	s.Trigger, s.Note = why, fmt.Sprintf("repeats version %d%s", s.Version, of)
	return s
}

// clearSummary leaves the session without a summary; its versions stay.
func (stx *sessionTx) clearSummary() error {
	row := &stx.session
	if row.SummaryVersion == 0 {
		return nil
	}
	if err := stx.dropPrepared(); err != nil { // it extends the removed summary
		return err
	}
	row.ConversationSummary, row.SummaryThroughID, row.SummaryThroughSeq = nil, nil, 0
	row.SummaryVersion, row.SummaryTokens, row.SummarizedCount, row.LastSummarizedAt = 0, 0, 0, nil
	row.SummaryCovered, row.SummaryMadeFor, row.NativeSummary = 0, 0, nil
	return stx.tx.Model(&core.Summary{}).Where(activeOf(row.ID)).UpdateColumn("state", core.SummaryDropped).Error
}

// activeOf is the condition for the active summary, in the words of the partial index.
func activeOf(session core.SessionID) clause.Expr {
	return gorm.Expr("session_id = ? AND kind = 'rolling' AND state = 'active'", session)
}

// checkIdle returns ErrConflict while the session has an active or queued run.
func (stx *sessionTx) checkIdle() error {
	f, err := stx.loadFacts()
	if err == nil && f.Active+f.Queued > 0 {
		err = conversation.Busy(stx.session.ID)
	}
	return err
}
