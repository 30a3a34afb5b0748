package repositories

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Fork creates a session with the log of another one up to a message, on the branch through
// it; without a message, with its current path. A tool call is copied with its results;
// deleted messages are not copied. The newest version of the summary that ends on that path
// becomes the first one of the copy. Runs and events are not copied. The source is not
// changed.
//
// The copy is written in steps and becomes visible when it is complete. If ctx ends before
// the last step, the copy is removed. ErrConflict while the source is busy, ErrStale when a
// message was deleted before it was copied.
func (r *Branches) Fork(ctx context.Context, tenant core.Tenant, in core.ForkSession) (core.Session, error) {
	var fork core.Session
	id, repeated, err := commitOnce(ctx, func(note resultRecorder) error {
		f, err := r.beginFork(ctx, tenant, in)
		if err != nil {
			return err
		}
		err = f.findPath(ctx)
		for err == nil && f.copied < len(f.path) {
			err = f.copySome(ctx, stepRows)
		}
		if err == nil {
			fork, err = f.finishFork(ctx, note)
		}
		if err != nil {
			f.endLease(ctx)
		}
		return err
	})
	switch {
	case err != nil:
		return core.Session{}, wrapError(err, "session", in.SessionID)
	case repeated:
		return NewSessions(r.db).Get(ctx, tenant, core.SessionID(id))
	}
	return fork, nil
}

// forkJob is a fork in progress. Its lease is that of the copy.
type forkJob struct {
	*sessionLease
	source core.SessionID
	leaf   core.MessageID   // the last message to copy; empty = none
	prefix string           // of the ids of the copies
	path   []core.MessageID // the messages to copy, in order
	copied int              // how many of them are copied
}

// beginFork stores the copy as a hidden session without messages.
func (r *Branches) beginFork(ctx context.Context, tenant core.Tenant, in core.ForkSession) (*forkJob, error) {
	f := &forkJob{source: in.SessionID, prefix: core.NewID[string]()[:idPrefix]}
	_, err := changeLog(ctx, r.db, in.SessionID, func(source *sessionTx) (err error) {
		if f.leaf, err = source.forkLeaf(in.MessageID); err != nil {
			return err
		}
		s, now := source.session, core.Now()
		row := models.Session{Busy: busyFork, Session: core.Session{
			ID: cmp.Or(in.ID, core.NewID[core.SessionID]()), Owner: s.Owner, Agent: s.Agent, Model: s.Model, Title: in.Title, UserID: s.UserID,
			Source: s.Source, Timezone: s.Timezone, Instructions: s.Instructions, Metadata: s.Metadata, Tags: s.Tags,
			Temporary: s.Temporary, Speakers: s.Speakers, CreatedAt: now, UpdatedAt: now,
		}}
		if err := insertSession(source.tx, row); err != nil {
			return err
		}
		f.sessionLease, err = newSessionTx(source.tx, row).acquireLease(r.db, busyFork, "")
		return err
	}, visibleTo(tenant))
	return f, err
}

// copySome copies the next messages in one step.
func (f *forkJob) copySome(ctx context.Context, rows int) error {
	part := f.path[f.copied:min(f.copied+rows, len(f.path))]
	err := f.runStep(ctx, func(stx *sessionTx) error {
		if err := stx.copyLog(part, f.copied, f.prefix); err != nil {
			return err
		}
		var rows []models.BlobReference
		if err := stx.tx.Where("message_id IN ?", part).Find(&rows).Error; err != nil {
			return err
		}
		for i, row := range rows {
			seq := f.copied + slices.Index(part, core.MessageID(row.MessageID)) + 1
			rows[i].MessageID, rows[i].SessionID = string(copyID(f.prefix, seq)), string(stx.session.ID)
		}
		return insertRows(stx.tx, &rows)
	})
	if err == nil {
		f.copied += len(part)
	}
	return err
}

// finishFork copies what belongs to the messages, and makes the copy visible. The source is
// locked, so that no deletion changes it meanwhile.
func (f *forkJob) finishFork(ctx context.Context, note resultRecorder) (out core.Session, err error) {
	copies := make(map[core.MessageID]messageCopy, len(f.path)) // by their originals
	for i, id := range f.path {
		copies[id] = messageCopy{id: copyID(f.prefix, i+1), seq: int64(i + 1)}
	}
	err = f.runStepWith(ctx, f.source, func(source, fork *sessionTx) error {
		fork.extendLog(f.copied)
		fork.clearBusy()
		stored, err := fork.countStored(nil)
		if err != nil {
			return err
		}
		fork.session.StoredBytes = stored
		if err := fork.copySummary(source, copies); err != nil {
			return err
		}
		if err := fork.copyLoops(source, copies); err != nil {
			return err
		}
		if err := fork.copyInstructions(source, copies); err != nil {
			return err
		}
		var rows []models.PromptSetup
		if err := fork.tx.Where("session_id = ?", source.session.ID).Find(&rows).Error; err != nil {
			return err
		}
		for i := range rows {
			rows[i].SessionID = string(fork.session.ID)
		}
		addBytes(fork, 1, rows)
		if err := insertRows(fork.tx, &rows); err != nil {
			return err
		}
		// Erasing the message of the title erases the title.
		if of, ok := copies[core.MessageID(source.session.TitleMessageID)]; ok && source.session.TitleMade {
			fork.session.TitleMessageID, fork.session.TitleMade = models.Ref(of.id), true
		}
		if err := fork.indexTitle(); err != nil {
			return err
		}
		out = fork.session.Core()
		if err := fork.saveChanges(); err != nil {
			return err
		}
		return note(fork.tx, string(out.ID))
	})
	return out, err
}

// messageCopy is the copy of a message in a fork.
type messageCopy struct {
	id  core.MessageID
	seq int64
}

// idPrefix is the length of the part that the ids of copies share, the time and random
// bits. Their last group is the seq.
const idPrefix = len("00000000-0000-7000-8000-")

func copyID(prefix string, seq int) core.MessageID {
	return core.MessageID(fmt.Sprintf("%s%012x", prefix, seq))
}

// forkLeaf returns the last message to copy; empty if there is none.
func (stx *sessionTx) forkLeaf(id core.MessageID) (core.MessageID, error) {
	if id == "" {
		f, err := stx.loadFacts()
		return core.MessageID(f.ParentID), err
	}
	if _, err := stx.findMessage(id); err != nil {
		return "", err
	}
	atom, err := stx.atomOf(id)
	if err != nil {
		return "", err
	}
	return atom[len(atom)-1], nil
}

// forkPathSQL selects the messages from the root to a leaf that were not deleted.
const forkPathSQL = `WITH RECURSIVE up (id, parent_id, seq, deleted_at) AS (
	SELECT id, parent_id, seq, deleted_at FROM messages WHERE id = @leaf
	UNION ALL
	SELECT m.id, m.parent_id, m.seq, m.deleted_at FROM messages m JOIN up ON m.id = up.parent_id)
SELECT id FROM up WHERE deleted_at IS NULL ORDER BY seq`

// findPath finds the messages to copy, in order. It locks nothing.
func (f *forkJob) findPath(ctx context.Context) error {
	if f.leaf == "" {
		return nil
	}
	walk := func(tx *gorm.DB) error {
		return (&sessionTx{tx: tx}).treeQuery().Raw(forkPathSQL, sql.Named("leaf", f.leaf)).Scan(&f.path).Error
	}
	if !isPostgres(f.db) { // a transaction would wait for the writers
		return walk(f.db.WithContext(ctx))
	}
	return inTx(ctx, f.db, walk)
}

// copyLog copies the messages, the first to the n-th place of the log, from 0 on. The ids
// of the copies follow from their seq, so that one statement can set their parents, too.
// ErrStale if one of the messages was removed.
func (stx *sessionTx) copyLog(ids []core.MessageID, n int, prefix string) error {
	columns := append(columnsOf(stx.tx, &core.Message{}), "origin_id")
	id := "CAST(CAST(@prefix AS text) || lpad(to_hex(%s), 12, '0') AS uuid)"
	if !isPostgres(stx.tx) {
		id = "@prefix || printf('%%012x', %s)"
	}
	given := map[string]string{
		"id": fmt.Sprintf(id, "n"), "session_id": "@new", "seq": "n", "on_path": "true", "origin_id": "id",
		"parent_id": "CASE WHEN n > 1 THEN " + fmt.Sprintf(id, "n - 1") + " END", "run_id": "NULL", "client_message_id": "NULL", "feedback": "NULL", "revised_at": "NULL",
	}
	if isPostgres(stx.tx) {
		given["session_id"], given["run_id"], given["feedback"] = "CAST(@new AS uuid)", "CAST(NULL AS uuid)", "CAST(NULL AS jsonb)"
		given["revised_at"] = "CAST(NULL AS timestamptz)"
	}
	var values []string
	for _, column := range columns {
		value, ok := given[column]
		if !ok {
			value = column
		}
		values = append(values, value)
	}
	res := stx.tx.Exec("INSERT INTO messages ("+strings.Join(columns, ", ")+") SELECT "+strings.Join(values, ", ")+
		" FROM (SELECT m.*, @n + ROW_NUMBER() OVER (ORDER BY m.seq) AS n FROM messages m WHERE m.id IN @ids AND m.deleted_at IS NULL) c",
		sql.Named("n", n), sql.Named("ids", ids), sql.Named("new", stx.session.ID), sql.Named("prefix", prefix))
	if res.Error != nil {
		return res.Error
	}
	if int(res.RowsAffected) != len(ids) {
		return core.Errorf(core.ErrStale, "a message was removed while it was copied; fork the session again")
	}
	return nil
}

const forkSummarySQL = `SELECT id, through_id FROM session_summaries
WHERE session_id = ? AND kind = 'rolling' AND state IN ('active', 'dropped') AND activated_at IS NOT NULL
ORDER BY through_seq DESC, version DESC`

// copySummary copies the source's newest summary whose last message was copied.
func (stx *sessionTx) copySummary(source *sessionTx, copies map[core.MessageID]messageCopy) error {
	var rows []core.Summary
	if err := stx.tx.Raw(forkSummarySQL, source.session.ID).Scan(&rows).Error; err != nil {
		return err
	}
	newest := slices.IndexFunc(rows, func(s core.Summary) bool { return copies[s.ThroughID].seq > 0 })
	if newest < 0 {
		return nil
	}
	var row core.Summary
	if err := stx.tx.Where("id = ?", rows[newest].ID).Take(&row).Error; err != nil {
		return err
	}
	s, last := repeatVersion(row, "fork", " of session "+string(source.session.ID)), copies[row.ThroughID]
	s.FromID, s.FromSeq, s.ThroughID, s.ThroughSeq = copyID(string(last.id)[:idPrefix], 1), 1, last.id, last.seq
	s.MessagesCovered, s.MessagesAdded = int(last.seq), int(last.seq)
	_, err := stx.activateSummary(s)
	return err
}
