package telemetry

import (
	"errors"
	"time"

	"bobbin/app/core"
)

// Count adds to a counter.
func (t *Telemetry) Count(counter core.Counter, n int, labels ...string) {
	t.add(string(counter), float64(n), labels...)
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
