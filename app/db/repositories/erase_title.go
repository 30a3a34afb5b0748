package repositories

import (
	"database/sql"

	"bobbin/app/db/models"
)

// Whether a message, or one that answers it, is among some.
const turnSQL = `WITH RECURSIVE up (id, parent_id, role) AS (
	SELECT id, parent_id, role FROM messages WHERE id IN @ids
	UNION
	SELECT m.id, m.parent_id, m.role FROM messages m JOIN up ON m.id = up.parent_id WHERE up.role <> 'user')
SELECT COUNT(*) FROM up WHERE id = @question`

// eraseTitle takes the session's title away if it was made of the turn of one of the
// messages: the next answer makes a new one. A title that was set stays. It returns
// the title that there is now, which events are to tell of; nil = no title was made
// of the messages.
func (j *journal) eraseTitle(ids []models.Ref) (*string, error) {
	if j.session.TitleMessageID == "" {
		return nil, nil
	}
	var n int
	err := j.tree().Raw(turnSQL, sql.Named("ids", ids), sql.Named("question", j.session.TitleMessageID)).Scan(&n).Error
	if err != nil || n == 0 {
		return nil, err
	}
	if j.session.TitleMade {
		j.session.Title, j.session.TitledAt = "", nil
		j.changes["title"], j.changes["titled_at"] = "", nil
	}
	j.session.TitleMessageID, j.session.TitleMade = "", false
	j.changes["title_message_id"], j.changes["title_made"] = nil, false
	return &j.session.Title, nil
}
