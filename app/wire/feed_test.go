package wire

import (
	"fmt"
	"log/slog"
	"testing"

	"bobbin/app/core"
	"bobbin/app/events"
	"bobbin/tests/compare"
)

// What webhooks are notified of wakes the deliveries whoever publishes it: also that a run
// waits for a person, and that one was canceled before it began. The publisher never waits.
func TestEventsWakeDeliveries(t *testing.T) {
	t.Parallel()
	for event, want := range map[core.EventType]int{
		core.EventRunWaiting: 1, core.EventRunCanceled: 1, core.EventRunFailed: 1, core.EventRunSucceeded: 1,
		core.EventRunStarted: 0, core.EventRunQueued: 0, core.EventMessageCreated: 0, core.EventDeliveryUpdated: 0,
	} {
		log := slog.New(slog.DiscardHandler)
		feed := events.New(events.NewLocal(1), nil, log)
		outbox := NewDeliveries(Deps{Feed: feed, Logger: log})
		notified := core.RunData{Delivers: want > 0}
		feed.Publish(t.Context(), []core.Event{{Type: core.EventMessageCreated}, {Type: event, Data: notified}, {Type: event, Data: notified}})
		compare.Equal(t, fmt.Sprintf("%s: elements", event), want, len(outbox.NewWork))
	}
}
