package providerhttp

import (
	"context"
	"fmt"
	"io"
	"time"
)

// limitError is the error of one of our own time limits.
type limitError struct {
	what  string
	limit time.Duration
}

func (e *limitError) Error() string { return fmt.Sprintf("%s within %v", e.what, e.limit) }

// watchdog cancels a context when nothing happens for too long.
type watchdog struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

func newWatchdog(parent context.Context) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(parent)
	return ctx, &watchdog{cancel: cancel}
}

// arm starts the timer, unless the limit is negative.
func (w *watchdog) arm(limit time.Duration, what string) {
	if limit < 0 {
		return
	}
	w.timer = time.AfterFunc(limit, func() { w.cancel(&limitError{what: what, limit: limit}) })
}

// disarm stops the timer.
func (w *watchdog) disarm() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// stop ends the request.
func (w *watchdog) stop() {
	w.disarm()
	w.cancel(nil)
}

// watchedBody runs the timer only while it waits for the provider, so that a slow reader
// of the answer does not count.
type watchedBody struct {
	body  io.Reader
	watch *watchdog
	limit time.Duration // of the next read
	idle  time.Duration // of those after the first
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.watch.arm(b.limit, "nothing more came")
	defer b.watch.disarm()
	b.limit = b.idle
	return b.body.Read(p)
}
