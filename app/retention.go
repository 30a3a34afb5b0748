package app

import (
	"bobbin/app/db/repositories"
	"bobbin/app/purge"
	"bobbin/app/retention"
)

// buildRetention builds what removes things that were kept long enough.
func (a *App) buildRetention(purges *purge.Service) *retention.Worker {
	return retention.New(retention.Options{
		Store: repositories.NewRetention(a.database.Gorm), Audit: repositories.NewAudit(a.database.Gorm), Purge: purges, Observer: a.telemetry, Logger: a.log,
		Events: a.cfg.Retention.Events, Archived: a.cfg.Retention.ArchivedSessions,
	})
}
