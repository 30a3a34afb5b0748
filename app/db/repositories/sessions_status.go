package repositories

import (
	"slices"
	"strings"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// sessionRow is a session with the state of its runs.
type sessionRow struct {
	models.Session `gorm:"embedded"`

	Runs models.SessionRuns `gorm:"embedded;embeddedPrefix:runs_"`
}

// activeRunSQL selects from the active run of a session; the index runs_one_active has it.
const activeRunSQL = "FROM runs r WHERE r.session_id = sessions.id AND r.status IN ('running', 'waiting')"

// sessionRunsSQL are the columns of a models.SessionRuns: a few index entries for each
// session.
const sessionRunsSQL = "(SELECT r.id " + activeRunSQL + ") AS runs_active_id, " +
	"COALESCE((SELECT r.status " + activeRunSQL + "), '') AS runs_active_status, " +
	"(SELECT r.id FROM runs r WHERE r.session_id = sessions.id AND r.status = 'queued' ORDER BY r.queue_seq LIMIT 1) AS runs_next_id, " +
	"(SELECT COUNT(*) FROM approvals a WHERE a.status = 'open' AND a.run_id = (SELECT r.id " + activeRunSQL + ")) AS runs_open_approvals"

// selectSessions selects sessions with the state of their runs, with or without summary texts and prompt states. It names
// the columns: a migration may add some while statements are prepared.
func selectSessions(withTexts bool) condition {
	return func(db *gorm.DB) *gorm.DB {
		var columns []string
		for _, column := range columnsOf(db, &models.Session{}) {
			if withTexts || !slices.Contains([]string{"conversation_summary", "native_summary", "prompt_state"}, column) {
				columns = append(columns, "sessions."+column)
			}
		}
		return db.Select(strings.Join(columns, ", ") + ", " + sessionRunsSQL)
	}
}

// toCore returns the session.
func (r sessionRow) toCore() core.Session {
	s := r.Session.Core()
	r.Runs.Apply(&s)
	return s
}

// sessionWithRuns returns the session as it will be after the commit, with the state of its
// runs.
func (stx *sessionTx) sessionWithRuns() (core.Session, error) {
	s := stx.session.Core()
	var runs struct {
		models.SessionRuns `gorm:"embedded;embeddedPrefix:runs_"`
	}
	err := stx.tx.Table("sessions").Where("id = ?", stx.session.ID).Select(sessionRunsSQL).Take(&runs).Error
	runs.Apply(&s)
	return s, err
}

// sessionWithRun returns the session as it will be while the run that was just started is
// active, without a query.
func (stx *sessionTx) sessionWithRun(run core.Run) core.Session {
	s := stx.session.Core()
	models.SessionRuns{ActiveID: models.Ref(run.ID), ActiveStatus: string(run.Status)}.Apply(&s)
	return s
}
