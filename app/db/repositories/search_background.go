package repositories

import (
	"context"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/commit"
	"bobbin/app/db/models"
)

// Bounds of one transaction that indexes. On SQLite all writers wait meanwhile, some milliseconds; on
// PostgreSQL only those who change what is indexed already.
const (
	indexedSessions = 16
	indexedMessages = 100
	indexedBytes    = 512 << 10
)

// unindexedSQL is the condition for sessions with messages, or a title, to be indexed; unindexedJoinSQL joins
// their readers. Some of them may be indexed already: reader.seq says that, indexed_seq is for the index of
// sessions.
const (
	unindexedSQL     = "indexed_seq < last_seq AND NOT temporary AND busy NOT IN ('fork', 'purge')"
	unindexedJoinSQL = "JOIN session_readers reader ON reader.session_id = sessions.id AND reader.reader = '" + models.ReaderSearch + "'"
)

// IndexNext indexes the next messages that are not indexed yet, those of the sessions with the
// newest activity first, and returns how many it read; done reports that nothing is left
// that another transaction does not hold. Any number of processes may call it: a session is
// indexed by one at a time, which holds its row of session_readers, and never that of the session
// while it reads or writes entries. A crash loses nothing: the watermark is written with the entries.
func (r *Search) IndexNext(ctx context.Context) (n int, done bool, err error) {
	n, done, err = r.indexSome(ctx, func(db *gorm.DB) *gorm.DB { return db }, clause.LockingOptionsSkipLocked)
	return n, done, wrapError(err, "search", "")
}

// indexSome is IndexNext for some sessions. Without SKIP LOCKED among its options it waits for
// transactions that hold them.
func (r *Search) indexSome(ctx context.Context, scope func(*gorm.DB) *gorm.DB, lockOptions string) (n int, done bool, err error) {
	// A look first: on SQLite the transaction takes the lock of all writers.
	if some, err := r.hasUnindexed(ctx, scope); err != nil || !some {
		return 0, true, err
	}
	err = inTx(ctx, r.db, func(tx *gorm.DB) error {
		sessions, err := lockUnindexed(tx, scope, lockOptions)
		if err != nil {
			return err
		}
		parts, err := readUnindexed(tx, sessions)
		if err != nil {
			return err
		}
		n, done = 0, len(sessions) < indexedSessions && len(parts) == len(sessions)
		for _, part := range parts {
			n += max(1, len(part.messages))
			done = done && part.through == part.session.LastSeq
		}
		return writeIndex(tx, parts)
	})
	return n, done && err == nil, err
}

// unindexedSession is a session that may not be indexed whole.
type unindexedSession struct {
	models.Session
	Seq int64 // it is indexed up to this one
}

// lockUnindexed locks the readers of the newest sessions to be indexed, and returns the sessions as they are then. Their own rows are not locked.
func lockUnindexed(tx *gorm.DB, scope func(*gorm.DB) *gorm.DB, lockOptions string) (sessions []unindexedSession, err error) {
	var ids []string
	lock := clause.Locking{Strength: clause.LockingStrengthUpdate, Table: clause.Table{Name: "reader"}, Options: lockOptions}
	err = scope(tx.Model(&models.Session{}).Clauses(lock)).Joins(unindexedJoinSQL).Where(unindexedSQL).
		Order("updated_at DESC, id DESC").Limit(indexedSessions).Pluck("id", &ids).Error
	if err == nil && len(ids) > 0 { // another statement, as this one sees what those have committed who held the locks
		err = tx.Model(&models.Session{}).Select("sessions.*, reader.seq").Joins(unindexedJoinSQL).Where(unindexedSQL).Where("id IN ?", ids).
			Order("updated_at DESC, id DESC").Scan(&sessions).Error
	}
	return sessions, err
}

// hasUnindexed reports whether messages of some sessions may not be indexed yet.
func (r *Search) hasUnindexed(ctx context.Context, scope func(*gorm.DB) *gorm.DB) (bool, error) {
	var some []string
	err := scope(r.db.WithContext(ctx).Model(&models.Session{})).Joins(unindexedJoinSQL).Where(unindexedSQL).Limit(1).Pluck("id", &some).Error
	return len(some) > 0, err
}

// unindexedPart is what is to be indexed of a session.
type unindexedPart struct {
	session  unindexedSession
	messages []core.Message
	through  int64 // the seq up to which the session is indexed then
}

// readUnindexed reads what is to be indexed next of the sessions, whose readers are locked. The first ones come first, as far as the bounds of a transaction allow.
func readUnindexed(tx *gorm.DB, sessions []unindexedSession) ([]unindexedPart, error) {
	var parts []unindexedPart
	size, rest := 0, int64(indexedMessages)
	for i := 0; i < len(sessions) && rest > 0 && size < indexedBytes; i++ {
		s := sessions[i]
		s.IndexedSeq = s.Seq
		messages, err := findUnindexed(tx, s.Session, int(rest), indexedBytes)
		if err != nil {
			return nil, err
		}
		rest -= max(1, min(s.LastSeq-s.Seq, rest))
		part := unindexedPart{session: s, messages: messages, through: s.LastSeq}
		for k, m := range messages {
			if size += len(m.Content); size > indexedBytes && k > 0 {
				part.messages = messages[:k]
				break
			}
		}
		if k := len(part.messages); k > 0 {
			part.through = part.messages[k-1].Seq
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// writeIndex writes the entries of the parts, and how far their sessions are indexed.
func writeIndex(tx *gorm.DB, parts []unindexedPart) error {
	var entries []entry
	var replaced []core.MessageID
	for _, part := range parts {
		s := part.session
		for _, m := range part.messages {
			entries = append(entries, messageEntry(m, s.UserID))
			replaced = append(replaced, m.ID)
		}
		if s.Seq < 0 {
			entries = append(entries, titleEntry(s.Session))
			if err := tx.Where("session_id = ? AND message_id IS NULL", s.ID).Delete(&models.SearchEntry{}).Error; err != nil {
				return err
			}
		}
	}
	if err := tx.Where("message_id IN ?", replaced).Delete(&models.SearchEntry{}).Error; err != nil {
		return err
	}
	if err := indexEntries(tx, entries); err != nil {
		return err
	}
	ids := make([]string, 0, len(parts))
	for _, part := range parts {
		update := commit.Text(tx, "UPDATE session_readers SET seq = $1 WHERE session_id = $2 AND reader = $3", part.through, part.session.ID, models.ReaderSearch)
		if update.Callback().Raw().Execute(update); update.Error != nil {
			return update.Error
		}
		ids = append(ids, string(part.session.ID))
	}
	// What is indexed is to be embedded, too: no turn writes that.
	behind := "UPDATE session_readers SET behind = true WHERE session_id IN ? AND reader = ? AND NOT behind AND seq < (SELECT search.seq FROM session_readers search WHERE search.session_id = session_readers.session_id AND search.reader = ?)"
	if err := tx.Exec(behind, ids, models.ReaderVectors, models.ReaderSearch).Error; err != nil {
		return err
	}
	// The rows of the sessions come last, and locked ones another time: a turn waits only for the commit.
	free := tx.Model(&models.Session{}).Select("id").Clauses(skipLocked()).Where("id IN ?", ids)
	through := gorm.Expr("(SELECT seq FROM session_readers WHERE session_id = sessions.id AND reader = ?)", models.ReaderSearch)
	return tx.Model(&models.Session{}).Where("id IN (?)", free).UpdateColumn("indexed_seq", through).Error
}

// findUnindexed returns the first messages of the session behind IndexedSeq that have the bytes together, at
// most so many, in their order. Neither database reads a text for its length. A text counts no more than is
// read of it, so what is read exceeds the bytes if some messages are left.
func findUnindexed(db *gorm.DB, p models.Session, most, bytes int) (rows []core.Message, err error) {
	err = commit.Text(db, unindexedMessagesSQL, p.ID, p.IndexedSeq, p.LastSeq, most, bytes).Scan(&rows).Error
	return rows, err
}

// unindexedMessagesSQL ends with the message with which the messages exceed the bytes. See writeLimit for + 0.
const unindexedMessagesSQL = `SELECT id, session_id, owner, seq, on_path, role, substr(content, 1, 262144) AS content, tool_calls, tool_name, author, author_id, created_at FROM messages
WHERE session_id = $1 AND seq > $2 AND seq <= $3 AND deleted_at IS NULL AND seq <= COALESCE((SELECT seq FROM (
	SELECT seq, SUM(size) OVER (ORDER BY seq) AS total FROM (
		SELECT seq, CASE WHEN octet_length(content) < 262144 THEN octet_length(content) ELSE 262144 END AS size FROM messages
		WHERE session_id = $1 AND seq > $2 AND seq <= $3 AND deleted_at IS NULL ORDER BY seq LIMIT $4 + 0) AS sizes) AS totals
	WHERE total > $5 ORDER BY seq LIMIT 1), $3) ORDER BY seq LIMIT $4 + 0`

// Reindex makes all messages be indexed again, in the background, and returns of how many
// sessions. Searches find everything meanwhile.
func (r *Search) Reindex(ctx context.Context) (n int64, err error) {
	err = inTx(ctx, r.db, func(tx *gorm.DB) error {
		// The sessions first: writeIndex skips them then.
		if err := tx.Model(&models.Session{}).Where("indexed_seq >= 0 AND NOT temporary").UpdateColumn("indexed_seq", -1).Error; err != nil {
			return err
		}
		done := tx.Exec("UPDATE session_readers SET seq = -1 WHERE reader = ? AND seq >= 0", models.ReaderSearch)
		n = done.RowsAffected
		return done.Error
	})
	return n, wrapError(err, "search", "")
}

// Unindexed returns how many messages are not indexed yet.
func (r *Search) Unindexed(ctx context.Context) (n int64, err error) {
	err = r.db.WithContext(ctx).Raw("SELECT COALESCE(SUM(last_seq - seq), 0) FROM sessions " + unindexedJoinSQL + " WHERE " + unindexedSQL).Scan(&n).Error
	return n, wrapError(err, "search", "")
}

// idsOf returns the ids of the rows.
func idsOf[T, I any](rows []T, id func(T) I) []I {
	ids := make([]I, 0, len(rows))
	for _, r := range rows {
		ids = append(ids, id(r))
	}
	return ids
}
