package repositories

import (
	"bobbin/app/core"
	"bobbin/app/db/models"
)

// report tells what became of a run: an event in the session's feed, and a delivery
// to its webhook, which is the session's if the run has none of its own. Both are
// written with what they report.
func (j *journal) report(run core.Run, event core.EventType) error {
	j.emit(core.NewEvent(run.SessionID, run.ID, event, core.RunData{Run: run}))
	hook := run.Webhook
	if hook == nil {
		hook = j.session.Webhook.Core()
	}
	if hook == nil {
		return nil
	}
	now := core.Now()
	row := models.Delivery{
		ID: core.NewID[string](), Owner: run.Owner, SessionID: string(run.SessionID), RunID: string(run.ID),
		Kind: string(core.DeliveryWebhook), Event: string(event), Target: string(hook.URL), Secret: hook.Secret,
		State: string(core.DeliveryPending), Since: now, CreatedAt: now,
	}
	return failure(insert(j.tx, &row), "delivery", row.ID)
}
