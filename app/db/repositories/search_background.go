package repositories

import (
	"context"
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Bounds of one transaction that indexes. On SQLite all writers wait meanwhile, some milliseconds; on
// PostgreSQL only those who change what is indexed already.
const (
	indexedMessages = 100 // and sessions
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
		n, done = 0, len(sessions) < indexedMessages && len(parts) == len(sessions)
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
	newest := func(list *gorm.DB) *gorm.DB {
		return list.Model(&models.Session{}).Joins(unindexedJoinSQL).Where(unindexedSQL).Order("updated_at DESC, id DESC").Limit(indexedMessages)
	}
	if isPostgres(tx) { // another statement, as this one sees what those have committed who held the locks
		var ids []string
		lock := clause.Locking{Strength: clause.LockingStrengthUpdate, Table: clause.Table{Name: "reader"}, Options: lockOptions}
		if err := scope(newest(tx)).Clauses(lock).Pluck("id", &ids).Error; err != nil || len(ids) == 0 {
			return nil, err
		}
		scope = func(list *gorm.DB) *gorm.DB { return list.Where("id IN ?", ids) }
	}
	err = scope(newest(tx)).Select("id, sessions.owner, user_id, title, created_at, last_seq, reader.seq").Scan(&sessions).Error
	return sessions, err
}

// hasUnindexed reports whether messages of some sessions may not be indexed yet.
func (r *Search) hasUnindexed(ctx context.Context, scope func(*gorm.DB) *gorm.DB) (bool, error) {
	some, err := scan[[]string](scope(r.db.WithContext(ctx).Model(&models.Session{})).Joins(unindexedJoinSQL).Where(unindexedSQL).Limit(1).Select("id"))
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
	var windows []window
	rest := int64(indexedMessages)
	for _, s := range sessions {
		through := min(s.LastSeq, s.Seq+rest)
		if rest -= max(1, through-s.Seq); rest < 0 {
			break
		}
		parts = append(parts, unindexedPart{session: s, through: through})
		windows = append(windows, window{string(s.ID), s.Seq + 1, through})
	}
	if len(parts) == 0 {
		return nil, nil
	}
	with, args := windowsSQL(tx, windows)
	var messages []core.Message
	if err := tx.Raw(with+fmt.Sprintf(unindexedMessagesSQL, windowMessagesSQL(tx)), append(args, indexedBytes)...).Scan(&messages).Error; err != nil {
		return nil, err
	}
	i, size := 0, 0
	for _, m := range messages {
		for parts[i].session.ID != m.SessionID {
			i++
		}
		parts[i].messages = append(parts[i].messages, m)
		if size += len(m.Content); size > indexedBytes {
			parts[i].through = m.Seq
			return parts[:i+1], nil
		}
	}
	return parts, nil
}

// unindexedMessagesSQL ends with the message with which the messages exceed the bytes. Neither database reads a
// text for its length. A text counts no more than is read of it, so what is read exceeds the bytes if some messages are left.
const unindexedMessagesSQL = ` SELECT m.id, m.session_id, m.owner, m.seq, m.on_path, m.role, substr(m.content, 1, 262144) AS content, m.tool_calls, m.tool_name, m.created_at FROM (
	SELECT id, n, SUM(size) OVER (ORDER BY n, seq) - size AS earlier FROM (
		SELECT m.id, w.n, m.seq, CASE WHEN octet_length(m.content) < 262144 THEN octet_length(m.content) ELSE 262144 END AS size
		FROM %s WHERE m.deleted_at IS NULL) AS sizes) AS totals
	JOIN messages m ON m.id = totals.id WHERE earlier <= ? ORDER BY n, m.seq`

// writeIndex writes the entries of the parts, and how far their sessions are indexed.
func writeIndex(tx *gorm.DB, parts []unindexedPart) error {
	var entries []entry
	var replaced []core.MessageID
	var ids, untitled []core.SessionID
	var windows []window
	for _, part := range parts {
		s := part.session
		for _, m := range part.messages {
			entries = append(entries, messageEntry(m, s.UserID))
			replaced = append(replaced, m.ID)
		}
		if s.Seq < 0 {
			entries, untitled = append(entries, titleEntry(s.Session)), append(untitled, s.ID)
		}
		ids, windows = append(ids, s.ID), append(windows, window{string(s.ID), s.Seq, part.through})
	}
	if len(parts) == 0 {
		return nil
	}
	// FTS5 writes what it has so far whenever a row comes before the last one.
	slices.SortStableFunc(entries, func(a, b entry) int { return a.CreatedAt.Compare(b.CreatedAt) })
	err := tx.Where("message_id IN ?", replaced).Delete(&models.SearchEntry{}).Error
	if err == nil {
		err = replaceTitles(tx, untitled, entries)
	}
	if err != nil {
		return err
	}
	with, args := windowsSQL(tx, windows)
	moved := "UPDATE session_readers SET seq = w.final FROM w WHERE session_readers.session_id = w.session_id AND reader = ?"
	if err := tx.Exec(with+" "+moved, append(args, models.ReaderSearch)...).Error; err != nil {
		return err
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
