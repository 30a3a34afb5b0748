package models

import "bobbin/app/core"

// Run is a row of runs.
type Run struct {
	core.Run
	LastWrite string  // core.RunWrite.ID
	Webhook   Webhook `gorm:"embedded;embeddedPrefix:webhook_"`
}

// RunFrom returns the row of a run.
func RunFrom(r core.Run) Run { return Run{Run: r, Webhook: WebhookFrom(r.Webhook)} }

// Core returns the run of the row.
func (r Run) Core() core.Run {
	r.Run.Webhook = r.Webhook.Core()
	return r.Run
}
