package repositories

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/commit"
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
	err := commitOnce(ctx, func(note resultRecorder) error {
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
	}, func(id string) (err error) {
		fork, err = NewSessions(r.db).Get(ctx, tenant, core.SessionID(id))
		return err
	})
	return fork, wrapError(err, "session", in.SessionID)
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

// copySome copies the next messages in one step. ErrStale if one of them was removed.
func (f *forkJob) copySome(ctx context.Context, rows int) error {
	part := f.path[f.copied:min(f.copied+rows, len(f.path))]
	err := f.runStep(ctx, func(stx *sessionTx) error {
		copied, err := findIn[forkedMessage](stx.tx.Where("deleted_at IS NULL").Order("seq"), "id", part)
		if err == nil && len(copied) != len(part) {
			err = core.Errorf(core.ErrStale, "a message was removed while it was copied; fork the session again")
		}
		for i := range copied {
			m, seq := &copied[i], f.copied+i+1
			m.OriginID, m.ID, m.SessionID, m.Seq, m.OnPath = m.ID, copyID(f.prefix, seq), stx.session.ID, int64(seq), true
			m.RunID, m.ClientMessageID, m.Feedback, m.RevisedAt = "", "", nil, nil
			if m.ParentID = ""; seq > 1 {
				m.ParentID = copyID(f.prefix, seq-1)
			}
		}
		if err == nil {
			err = stx.tx.Create(&copied).Error // commit.Insert knows the table without origin_id
		}
		if err != nil {
			return err
		}
		return stx.tx.Exec(`INSERT INTO blob_references (message_id, blob_id, session_id, owner) SELECT m.id, r.blob_id, m.session_id, r.owner
			FROM blob_references r JOIN messages m ON m.origin_id = r.message_id AND m.session_id = @fork WHERE r.message_id IN @of`,
			map[string]any{"fork": stx.session.ID, "of": part}).Error
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
		stored, err := fork.countStored("true")
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
		if err := commit.Insert(fork.tx, &rows); err != nil {
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

// forkedMessage is the row of a copy.
type forkedMessage struct {
	core.Message
	OriginID core.MessageID `gorm:"type:uuid"`
}

// TableName is the table's name.
func (forkedMessage) TableName() string { return "messages" }

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

// findPath finds the messages to copy, in order. It locks nothing.
func (f *forkJob) findPath(ctx context.Context) error {
	if f.leaf == "" {
		return nil
	}
	walk := func(tx *gorm.DB) error {
		path, err := walkTree(tx, toParent, f.leaf)
		f.path = idsOf(slices.DeleteFunc(path, func(n pathNode) bool { return n.DeletedAt != nil }), pathNode.id)
		return err
	}
	if !isPostgres(f.db) { // a transaction would wait for the writers
		return walk(f.db.WithContext(ctx))
	}
	return inTx(ctx, f.db, walk)
}

// copySummary copies the source's newest summary whose last message was copied.
func (stx *sessionTx) copySummary(source *sessionTx, copies map[core.MessageID]messageCopy) error {
	valid, err := newestValid(stx.tx, source.session.ID, copiedThrough(stx), math.MaxInt64)
	if err != nil || len(valid) == 0 {
		return err
	}
	row := valid[0]
	s, last := repeatVersion(row, "fork", " of session "+string(source.session.ID)), copies[row.ThroughID]
	s.FromID, s.FromSeq, s.ThroughID, s.ThroughSeq = copyID(string(last.id)[:idPrefix], 1), 1, last.id, last.seq
	s.MessagesCovered, s.MessagesAdded = int(last.seq), int(last.seq)
	_, err = stx.activateSummary(s)
	return err
}
