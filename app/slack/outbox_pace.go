package slack

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"bobbin/app/core"
)

// maxHold is how long a thread waits for its channel before it makes room for another one.
const maxHold = 5 * time.Second

// laterError says that a thread is to be continued after some time.
type laterError struct {
	after time.Duration
	cause error
}

// Error says why.
func (e *laterError) Error() string { return fmt.Sprintf("%s; continues in %s", e.cause, e.after) }

// newLaterError returns the error of a call as one after which the thread is continued later; a
// laterError as it is.
func newLaterError(err error) error {
	var later *laterError
	if errors.As(err, &later) {
		return later
	}
	_, wait := classify(err)
	return &laterError{after: wait, cause: err}
}

// channelKey names the channel of a thread: "<team>/<channel>".
func channelKey(t core.SlackThread) string { return t.Team + "/" + t.Channel }

// pace keeps posts to a channel apart.
type pace struct {
	interval time.Duration
	mu       sync.Mutex
	next     map[string]time.Time // when a channel may get its next post; guarded by mu
}

// await waits until it is the caller's turn to post to the channel. A laterError says that it
// takes too long.
func (p *pace) await(ctx context.Context, channel string) error {
	p.mu.Lock()
	now := time.Now()
	at := p.next[channel]
	if at.Before(now) {
		at = now
	}
	wait := at.Sub(now)
	if wait <= maxHold {
		p.next[channel] = at.Add(p.interval)
	}
	p.mu.Unlock()
	if wait > maxHold {
		return &laterError{after: wait, cause: errors.New("the channel has more posts than Slack takes")}
	}
	return sleep(ctx, wait)
}

// isFree reports whether the channel may get a post now.
func (p *pace) isFree(channel string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.next[channel].After(time.Now())
}

// slowDown lets the channel get nothing for the time.
func (p *pace) slowDown(channel string, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := time.Now().Add(d); at.After(p.next[channel]) {
		p.next[channel] = at
	}
}

// busyChannels returns the channels whose threads would wait too long, and forgets those
// that are free.
func (p *pace) busyChannels() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	var busy []string
	for channel, at := range p.next {
		switch {
		case at.Before(now):
			delete(p.next, channel)
		case at.Sub(now) > maxHold:
			busy = append(busy, channel)
		}
	}
	return busy
}

// sleep waits; it returns the cause of ctx's end if that comes first.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
