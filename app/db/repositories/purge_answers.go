package repositories

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// anyID finds ids in what is kept of requests and answers.
var anyID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// answersPage is how many answers are read at a time: each may be a megabyte.
const answersPage = 20

// Answers removes the kept answers that the marks are in, or with dry only counts
// them.
func (r *Purges) Answers(ctx context.Context, m core.PurgeMarks, dry bool) (int64, error) {
	db := r.db.WithContext(ctx)
	var found int64
	last := models.IdempotencyKey{}
	for {
		page := db.Where("(owner, key) > (?, ?)", last.Owner, last.Key)
		if m.Owner != "" {
			page = page.Where("owner = ?", m.Owner)
		}
		var rows []models.IdempotencyKey
		if err := page.Order("owner, key").Limit(answersPage).Find(&rows).Error; err != nil {
			return found, failure(err, "idempotency keys of", m.Owner)
		}
		for _, row := range rows {
			if !marked(m, row) {
				continue
			}
			found++
			if dry {
				continue
			}
			err := db.Where("owner = ? AND key = ?", row.Owner, row.Key).Delete(&models.IdempotencyKey{}).Error
			if err != nil {
				return found, failure(err, "idempotency key", row.Key)
			}
		}
		if len(rows) < answersPage {
			return found, nil
		}
		last = rows[len(rows)-1]
	}
}

// marked reports whether a mark is in what is kept of a request.
func marked(m core.PurgeMarks, row models.IdempotencyKey) bool {
	for _, text := range [][]byte{[]byte(row.Target), []byte(row.Location), row.Body} {
		for _, id := range anyID.FindAll(text, -1) {
			if m.IDs[string(id)] {
				return true
			}
		}
	}
	if m.User == "" {
		return false
	}
	return slices.ContainsFunc(userFields(m.User), func(field string) bool { return bytes.Contains(row.Body, []byte(field)) })
}

// userFields is how a user stands in our JSON: answers do not escape <, > and &,
// events do.
func userFields(user string) []string {
	var plain bytes.Buffer
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(user)             // a string has a JSON form always
	escaped, _ := json.Marshal(user) // the same
	return []string{`"user_id":` + strings.TrimSpace(plain.String()), `"user_id":` + string(escaped)}
}
