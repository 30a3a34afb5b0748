package repositories

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Fork makes a new session with the log of another one up to a message, on the
// branch through it; without a message, with its current path. A tool call is
// copied with its results, what was deleted is not. The newest version of the
// summary that ends on that way is the first one of the copy. Runs and events are
// not copied. The source is not changed.
func (r *Branches) Fork(ctx context.Context, scope core.Scope, in core.ForkSession) (core.Session, error) {
	var out core.Session
	err := inTx(ctx, r.db, func(tx *gorm.DB) error {
		source, err := lockSession(tx, in.SessionID, visible(scope))
		if err != nil {
			return err
		}
		leaf, err := source.forkLeaf(in.MessageID)
		if err != nil {
			return err
		}
		fork, err := source.forked(in.Title)
		if err != nil {
			return err
		}
		if err := fork.copyLog(leaf); err != nil {
			return err
		}
		if err := fork.copySummary(source, leaf); err != nil {
			return err
		}
		if err := fork.copyLoops(source, leaf); err != nil {
			return err
		}
		if err := fork.copyTitleMark(source); err != nil {
			return err
		}
		out = fork.session.Core()
		return fork.close()
	})
	if err != nil {
		return core.Session{}, failure(err, "session", in.SessionID)
	}
	return out, nil
}

// forkLeaf returns the last message that is copied; empty if there is none.
func (j *journal) forkLeaf(id core.MessageID) (models.Ref, error) {
	if id == "" {
		f, err := j.facts("", "")
		return f.ParentID, err
	}
	if _, err := j.message(id); err != nil {
		return "", err
	}
	atom, err := j.atom(id)
	if err != nil {
		return "", err
	}
	return atom[len(atom)-1], nil
}

// forked stores a new session with the settings of the present one, still empty.
func (j *journal) forked(title string) (*journal, error) {
	s, now := j.session, core.Now()
	row := models.Session{
		ID: core.NewID[string](), Owner: s.Owner, Agent: s.Agent, Model: s.Model, Title: title, UserID: s.UserID,
		Source: s.Source, Timezone: s.Timezone, Instructions: s.Instructions, Metadata: s.Metadata,
		CreatedAt: now, UpdatedAt: now,
	}
	err := insert(j.tx, &row)
	if err == nil {
		err = index(j.tx, []entry{titleEntry(row)})
	}
	return &journal{tx: j.tx, session: row, changes: map[string]any{}}, err
}

// The way from the root to a message.
const wayCTE = `WITH RECURSIVE up (id, parent_id) AS (
	SELECT id, parent_id FROM messages WHERE id = @leaf
	UNION ALL
	SELECT m.id, m.parent_id FROM messages m JOIN up ON m.id = up.parent_id) `

// copyLog copies the way to the leaf. The seq of the copies begins at 1, and their
// ids follow from it, so that one statement can name their parents, too.
func (j *journal) copyLog(leaf models.Ref) error {
	if leaf == "" {
		return nil
	}
	stmt := &gorm.Statement{DB: j.tx}
	if err := stmt.Parse(&models.Message{}); err != nil {
		return err
	}
	id := "CAST(CAST(@prefix AS text) || lpad(to_hex(%s), 12, '0') AS uuid)"
	if !isPostgres(j.tx) {
		id = "@prefix || printf('%%012x', %s)"
	}
	given := map[string]string{
		"id": fmt.Sprintf(id, "n"), "session_id": "@new", "seq": "n", "on_path": "true", "origin_id": "id",
		"parent_id": "CASE WHEN n > 1 THEN " + fmt.Sprintf(id, "n - 1") + " END", "run_id": "NULL", "client_message_id": "NULL",
	}
	if isPostgres(j.tx) {
		given["session_id"], given["run_id"] = "CAST(@new AS uuid)", "CAST(NULL AS uuid)"
	}
	var values []string
	for _, column := range stmt.Schema.DBNames {
		value, ok := given[column]
		if !ok {
			value = column
		}
		values = append(values, value)
	}
	res := j.tree().Exec("INSERT INTO messages ("+strings.Join(stmt.Schema.DBNames, ", ")+") "+wayCTE+"SELECT "+strings.Join(values, ", ")+
		" FROM (SELECT m.*, ROW_NUMBER() OVER (ORDER BY m.seq) AS n FROM messages m JOIN up ON m.id = up.id WHERE m.deleted_at IS NULL) c",
		sql.Named("leaf", leaf), sql.Named("new", j.session.ID), sql.Named("prefix", core.NewID[string]()[:idPrefix]))
	j.session.LastSeq, j.session.MessageCount = res.RowsAffected, int(res.RowsAffected)
	j.changes["last_seq"], j.changes["message_count"] = j.session.LastSeq, j.session.MessageCount
	if res.Error != nil {
		return res.Error
	}
	if err := j.copyReferences(); err != nil {
		return err
	}
	return j.indexLog()
}

// idPrefix is how much of a UUID comes before its last group: the time and random
// bits. The ids of copies differ in the last group only.
const idPrefix = len("00000000-0000-7000-8000-")

const forkSummarySQL = wayCTE + `SELECT * FROM session_summaries
WHERE session_id = @s AND kind = 'rolling' AND state IN ('active', 'dropped') AND activated_at IS NOT NULL AND through_id IN (SELECT id FROM up)
ORDER BY through_seq DESC, version DESC LIMIT 1`

// copySummary gives the copy the newest summary of the source that ends on the way
// to the leaf.
func (j *journal) copySummary(source *journal, leaf models.Ref) error {
	if leaf == "" {
		return nil
	}
	var rows []models.Summary
	err := j.tree().Raw(forkSummarySQL, sql.Named("leaf", leaf), sql.Named("s", source.session.ID)).Scan(&rows).Error
	if err != nil || len(rows) == 0 {
		return err
	}
	s := repeatedOf(rows[0], source)
	var ends []models.Message // the first copy, and that of the last message covered
	err = j.tx.Select("id, seq").Where("session_id = ? AND (seq = 1 OR origin_id = ?)", j.session.ID, s.ThroughID).Order("seq").Find(&ends).Error
	if err != nil || len(ends) == 0 {
		return err
	}
	first, last := ends[0], ends[len(ends)-1]
	s.FromID, s.FromSeq, s.ThroughID, s.ThroughSeq = core.MessageID(first.ID), first.Seq, core.MessageID(last.ID), last.Seq
	s.MessagesCovered, s.MessagesAdded = int(last.Seq), int(last.Seq)
	_, err = j.activate(s)
	return err
}

// copyTitleMark notes which copy the title was made of, so that it goes with it.
func (j *journal) copyTitleMark(source *journal) error {
	if source.session.TitleMessageID == "" || !source.session.TitleMade {
		return nil
	}
	var ids []models.Ref
	err := j.tx.Model(&models.Message{}).Where("session_id = ? AND origin_id = ?", j.session.ID, source.session.TitleMessageID).Pluck("id", &ids).Error
	if err != nil || len(ids) == 0 {
		return err
	}
	j.session.TitleMessageID, j.session.TitleMade = ids[0], true
	j.changes["title_message_id"], j.changes["title_made"] = ids[0], true
	return nil
}
