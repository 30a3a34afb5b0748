package app

import (
	"log/slog"
	"testing"

	"bobbin/app/core"
	"bobbin/app/events"
)

// What webhooks are told of wakes the deliveries whoever publishes it: also that a run
// waits for a person, and that one was canceled before it began.
func TestOutletWakesDeliveries(t *testing.T) {
	t.Parallel()
	feed := events.New(events.NewLocal(1), nil, slog.New(slog.DiscardHandler))
	for event, want := range map[core.EventType]int{
		core.EventRunWaiting: 1, core.EventRunCanceled: 1, core.EventRunFailed: 1, core.EventRunSucceeded: 1,
		core.EventRunQueued: 0, core.EventMessageCreated: 0, core.EventDeliveryUpdated: 0,
	} {
		woken := 0
		o := outlet{feed, func() { woken++ }}
		o.Publish(t.Context(), []core.Event{{Type: core.EventMessageCreated}, {Type: event}, {Type: event}})
		if woken != want {
			t.Errorf("%s: woken %d times, want %d", event, woken, want)
		}
	}
}
