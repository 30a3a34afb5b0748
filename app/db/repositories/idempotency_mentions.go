package repositories

import (
	"encoding/json"
	"regexp"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Rows of idempotency_mentions list the ids in stored answers, so that a deletion finds
// these without reading all answers.

const idPattern = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`

var (
	anyID        = regexp.MustCompile(idPattern)
	anyUser      = regexp.MustCompile(`"(?:user|author)_id":("(?:[^"\\]|\\.)*")`)
	ownID        = regexp.MustCompile(`"(?:id|user_message_id|answer_id)":"(` + idPattern + `)"`)
	sessionPath  = regexp.MustCompile(`/sessions/(` + idPattern + `)`)
	memoriesPath = regexp.MustCompile(`/memories/(` + idPattern + `)`)
)

// mentionOfUser is the mention of a user.
func mentionOfUser(user string) string { return "user " + user }

// mentionsOf returns all mentions in a request and its answer, each once.
func mentionsOf(target string, a core.KeyedAnswer) []string {
	texts := [][]byte{[]byte(target), []byte(a.Location)}
	if a.Kept {
		texts = append(texts, a.Body)
	}
	var all []string
	for _, text := range texts {
		for _, id := range anyID.FindAll(text, -1) {
			all = append(all, string(id))
		}
		for _, found := range anyUser.FindAllSubmatch(text, -1) {
			var user string
			if json.Unmarshal(found[1], &user) == nil && user != "" {
				all = append(all, mentionOfUser(user))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// storeMentions replaces the mentions of the key.
func storeMentions(tx *gorm.DB, in core.KeyedRequest, mentions []string) error {
	if err := tx.Where("owner = ? AND key = ?", in.Owner, in.Key).Delete(&models.IdempotencyMention{}).Error; err != nil {
		return err
	}
	for part := range slices.Chunk(mentions, maxIDs) {
		rows := make([]models.IdempotencyMention, 0, len(part))
		for _, m := range part {
			rows = append(rows, models.IdempotencyMention{Mention: m, Owner: in.Owner, Key: in.Key})
		}
		if err := insertRows(tx, &rows); err != nil {
			return err
		}
	}
	return nil
}

// isOutdated reports whether something in the answer was removed since. What the answer
// contains is locked against removal until the transaction ends, so that a later removal
// finds the answer.
func isOutdated(tx *gorm.DB, target string, a core.KeyedAnswer) (bool, error) {
	var body struct {
		SessionID string `json:"session_id"`
		Run       struct {
			SessionID string `json:"session_id"`
		} `json:"run"`
	}
	_ = json.Unmarshal(a.Body, &body) // other answers have none
	paths := target + " " + a.Location
	sessions := idsIn(sessionPath, paths)
	for _, id := range []string{body.SessionID, body.Run.SessionID} {
		if core.ValidID(id) {
			sessions = append(sessions, id)
		}
	}
	for table, ids := range map[string][]string{"sessions": sessions, "memories": idsIn(memoriesPath, paths)} {
		all := tx.Table(table)
		if table == "sessions" {
			all = all.Where(visibleSQL)
		}
		slices.Sort(ids)
		if ids = slices.Compact(ids); len(ids) == 0 {
			continue
		}
		var there []string
		err := all.Scopes(withRowLock(table, clause.LockingStrengthShare)).Select("id").Where("id IN ?", ids).Order("id").Scan(&there).Error
		if err != nil || len(there) != len(ids) {
			return true, err
		}
	}
	for part := range slices.Chunk(idsIn(ownID, string(a.Body)), maxIDs) {
		var deleted int64
		err := tx.Model(&models.Message{}).Where("id IN ? AND deleted_at IS NOT NULL", part).Count(&deleted).Error
		if err != nil || deleted > 0 {
			return deleted > 0, err
		}
	}
	return false, nil
}

// idsIn returns the ids that a pattern finds.
func idsIn(pattern *regexp.Regexp, text string) []string {
	var ids []string
	for _, found := range pattern.FindAllStringSubmatch(text, -1) {
		ids = append(ids, found[1])
	}
	return ids
}

// eraseAnswers clears stored answers that mention one of the messages, or with session the
// session.
func (stx *sessionTx) eraseAnswers(ids []models.Ref, session bool) error {
	mentioned := make([]string, 0, len(ids)+1)
	for _, id := range ids {
		mentioned = append(mentioned, string(id))
	}
	if session {
		mentioned = append(mentioned, stx.session.ID)
	}
	for part := range slices.Chunk(mentioned, maxIDs) {
		err := stx.tx.Model(&models.IdempotencyKey{}).
			Where("owner = ? AND key IN (SELECT key FROM idempotency_mentions WHERE owner = ? AND mention IN ?) AND body IS NOT NULL", stx.session.Owner, stx.session.Owner, part).
			UpdateColumn("body", nil).Error
		if err != nil {
			return err
		}
	}
	return nil
}
