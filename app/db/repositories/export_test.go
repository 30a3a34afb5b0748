package repositories

import (
	"context"

	"gorm.io/gorm"

	"bobbin/app/core"
)

// Fillup adds messages to a session's log without events, for tests that
// need very many.
func Fillup(ctx context.Context, db *gorm.DB, id core.SessionID, messages []core.Message) error {
	return inTx(ctx, db, func(tx *gorm.DB) error {
		j, err := lockSession(tx, id)
		if err != nil {
			return err
		}
		if _, err := j.put(messages, "", ""); err != nil {
			return err
		}
		return j.close()
	})
}
