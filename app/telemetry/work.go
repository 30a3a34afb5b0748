package telemetry

import (
	"errors"
	"time"

	"bobbin/app/core"
)

// Renewed counts a renewal of leases; err = none was renewed.
func (t *Telemetry) Renewed(kind core.WorkKind, renewed, lost int, err error) {
	if err != nil {
		t.add("lease_renewals_total", 1, string(kind), "failed")
		return
	}
	t.add("lease_renewals_total", float64(renewed), string(kind), "renewed")
	t.add("lease_renewals_total", float64(lost), string(kind), "lost")
}

// TookOver counts work that was taken over from another process.
func (t *Telemetry) TookOver(kind core.WorkKind, n int) {
	t.add("takeovers_total", float64(n), string(kind))
}

// Found counts work that a sweep discovered.
func (t *Telemetry) Found(what string, n int) { t.add("sweep_finds_total", float64(n), what) }

// Refused counts a write that came too late.
func (t *Telemetry) Refused(kind core.WorkKind) { t.add("fenced_writes_total", 1, string(kind)) }

// Retained counts a sweep, and what it removed.
func (t *Telemetry) Retained(events, sessions int, err error) {
	t.add("retention_removed_total", float64(events), "events")
	t.add("retention_removed_total", float64(sessions), "sessions")
	outcome := "done"
	if err != nil {
		outcome = "failed"
	}
	t.add("retention_sweeps_total", 1, outcome)
}

// SlackReceived counts what Slack sent.
func (t *Telemetry) SlackReceived(kind, outcome string) {
	t.add("slack_received_total", 1, kind, outcome)
}

// Delivery counts a try of a delivery, or a delivery that was given up without one.
func (t *Telemetry) Delivery(kind core.DeliveryKind, state core.DeliveryState) {
	t.add("delivery_tries_total", 1, string(kind), string(state))
}

// FanOut records the delay between an event and its arrival at a watcher.
func (t *Telemetry) FanOut(delay time.Duration) {
	t.observe("event_fan_out_seconds", max(delay, 0).Seconds())
}

// Watching counts a watcher that begins. The caller calls left once, with the error that ended
// it.
func (t *Telemetry) Watching() (left func(err error)) {
	open := t.gauge("watchers_open")
	open.Inc()
	return func(err error) {
		open.Dec()
		var e *core.Error
		if errors.As(err, &e) && e.Code == core.CodeSlowReader {
			t.add("watchers_slow_total", 1)
		}
	}
}

// Resync counts a watcher whose events are no longer available.
func (t *Telemetry) Resync() { t.add("event_resyncs_total", 1) }

// EventsFound counts events that were read from the database because the bus had not delivered
// them.
func (t *Telemetry) EventsFound(events int) { t.add("events_found_total", float64(events)) }
