package telemetry_test

import (
	"errors"
	"testing"
)

// How late events are, who was dropped and why, and what joins the replicas.
func TestEvents(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	watch(tel)
	tel.FanOut(-1) // a clock that is behind another
	tel.Watching()(errors.New("gone"))
	tel.Watching()
	want(t, tel, "bobbin_watchers", "bobbin_watchers_open 1", "bobbin_watchers_slow_total 1")
	want(t, tel, "bobbin_event_resyncs", "bobbin_event_resyncs_total 1")
	want(t, tel, "bobbin_events_found", "bobbin_events_found_total 2")
	want(t, tel, "bobbin_event_fan_out_seconds_sum", "bobbin_event_fan_out_seconds_sum 0.003")
	want(t, tel, "bobbin_event_fan_out_seconds_count", "bobbin_event_fan_out_seconds_count 2")
	want(t, tel, "bobbin_nats", "bobbin_nats_connected 1", `bobbin_nats_messages_total{direction="in"} 40`, `bobbin_nats_messages_total{direction="out"} 50`,
		"bobbin_nats_reconnects_total 1", "bobbin_nats_routes 2", "bobbin_nats_slow_total 3")
}
