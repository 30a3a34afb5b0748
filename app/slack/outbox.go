package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/app/events"
)

// Times and numbers of a Outbox.
const (
	sweepEvery      = time.Second
	leaseTime       = time.Minute // outlives the longest call
	callTime        = 20 * time.Second
	outboxStoreTime = 10 * time.Second
	maxThreads      = 128         // in progress in this process
	channelPart     = 4           // one channel has at most 1/channelPart of them
	defaultPause    = time.Second // between posts to a channel
)

// OutboxOptions configure a Outbox. All are required but Pause and Settle.
type OutboxOptions struct {
	Threads  *repositories.SlackThreads
	Posts    *repositories.SlackPosts
	Sessions core.SessionStore
	Messages core.MessageStore
	Feed     *events.Feed
	Clients  *Clients
	Worker   string // names this process in leases (core.NewWorker)
	Logger   *slog.Logger
	Pause    time.Duration // between posts to a channel; 0 = one second
	Settle   time.Duration // after which Slack has what it was sent; 0 = three seconds
}

// Outbox posts to threads. Safe for concurrent use.
type Outbox struct {
	OutboxOptions

	pace      *pace
	noStreams sync.Map              // teams in which Slack has no streams for this app
	noStatus  sync.Map              // teams in which Slack shows no status of this app
	done      chan core.SlackThread // no longer in progress
}

// NewOutbox returns a Outbox. It posts nothing before Run is called.
func NewOutbox(o OutboxOptions) *Outbox {
	o.Pause, o.Settle = cmp.Or(o.Pause, defaultPause), cmp.Or(o.Settle, 3*time.Second)
	return &Outbox{
		OutboxOptions: o, pace: &pace{interval: o.Pause, next: map[string]time.Time{}},
		done: make(chan core.SlackThread, maxThreads),
	}
}

// Run posts until ctx ends, then finishes the calls in progress. It returns nil. Call it once.
func (s *Outbox) Run(ctx context.Context) error {
	s.storeCall(ctx, "release all threads", func(ctx context.Context) error { return s.Threads.ReleaseAll(ctx, s.Worker) })
	var threads sync.WaitGroup
	current := map[core.SessionID]core.SlackThread{} // in progress
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case thread := <-s.done:
			delete(current, thread.SessionID)
		case <-sweep.C:
			s.startThreads(ctx, &threads, current)
		}
	}
	threads.Wait()
	return nil
}

// startThreads claims threads that are behind, and posts what is missing there.
func (s *Outbox) startThreads(ctx context.Context, threads *sync.WaitGroup, current map[core.SessionID]core.SlackThread) {
	free, busy := maxThreads-len(current), s.pace.busyChannels()
	if free <= 0 {
		return
	}
	channels := map[string]int{}
	for _, thread := range current {
		if channels[channelKey(thread)]++; channels[channelKey(thread)] == maxThreads/channelPart {
			busy = append(busy, channelKey(thread))
		}
	}
	var list []core.SlackBacklog
	s.storeCall(ctx, "claim threads", func(ctx context.Context) (err error) {
		list, err = s.Threads.Claim(ctx, core.SlackClaim{Worker: s.Worker, Lease: leaseTime, Limit: min(free, maxThreads/channelPart), Busy: busy})
		return err
	})
	for _, b := range list {
		current[b.SessionID] = b.SlackThread
		threads.Go(func() {
			newFollower(s, b).run(ctx)
			s.done <- b.SlackThread
		})
	}
}

// storeCall calls the store with a time limit, and logs an error.
func (s *Outbox) storeCall(ctx context.Context, failure string, call func(context.Context) error) {
	limited, cancel := context.WithTimeout(ctx, outboxStoreTime)
	defer cancel()
	if err := call(limited); err != nil && ctx.Err() == nil {
		s.Logger.WarnContext(ctx, "storage of Slack's threads failed", "call", failure, "err", err)
	}
}

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
	if later, ok := errors.AsType[*laterError](err); ok {
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
	return core.Sleep(ctx, wait)
}

func (p *pace) isFree(channel string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.next[channel].After(time.Now())
}

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

// maxPurgeTries is how often the deletion of a post is tried while Slack does not answer or
// refuses it for the moment.
const maxPurgeTries = 5

// PurgePosts deletes from Slack what was posted for a session, stores that with each post, and
// ends posting to the session's thread. A dry call only counts the posts. It may be repeated after
// an error, and then also counts what it deleted before. ErrUnavailable when Slack does not answer.
func (s *Outbox) PurgePosts(ctx context.Context, session core.SessionID, dry bool) (core.PurgedPosts, error) {
	var count core.PurgedPosts
	if !dry {
		if err := s.Threads.Stop(ctx, session); err != nil {
			return count, err
		}
	}
	posts, err := s.Posts.All(ctx, session)
	if err != nil {
		return count, err
	}
	for _, p := range posts {
		if dry {
			if maybeInSlack(p.State) {
				count.Found++
			}
			continue
		}
		state, err := s.followPost(p).purgePost(ctx, p)
		if err != nil {
			return count, err
		}
		n := &count.Refused // it is still there
		switch state {
		case core.SlackPostPending, core.SlackPostFailed, core.SlackPostRemoved:
			continue
		case core.SlackPostPurged:
			n = &count.Deleted
		case core.SlackPostGone:
			n = &count.Gone
		case core.SlackPostSending, core.SlackPostUnknown:
			n = &count.Unknown
		case core.SlackPostSent:
		}
		*n++
		count.Found++
	}
	return count, nil
}

// LookUp finds out whether a post of which that is unknown is in Slack, and stores the answer: sent, or
// failed if it is not in the thread. ErrUnavailable if Slack does not show the thread.
func (s *Outbox) LookUp(ctx context.Context, p core.SlackPost) error {
	ts, err := s.followPost(p).findPost(ctx, p, "")
	switch {
	case err != nil:
		return &core.Error{Kind: core.ErrUnavailable, Code: "slack_unreadable", Err: err, Message: "Slack does not show the thread (" + core.Clip(err.Error(), maxError) + "); look there yourself, or try again later"}
	case ts == "":
		p.State, p.Error = core.SlackPostFailed, "the thread does not have it"
		return s.Posts.Settle(ctx, p)
	}
	p.TS = ts
	return s.Posts.Confirm(ctx, p)
}

// followPost returns a follower of the post's thread, without its lease.
func (s *Outbox) followPost(p core.SlackPost) *follower {
	return newFollower(s, core.SlackBacklog{SlackThread: core.SlackThread{SessionID: p.SessionID, Owner: p.Owner, Team: p.Team, Channel: p.Channel, Thread: p.Thread}})
}

// maybeInSlack reports whether a post in the state is in Slack, or may be.
func maybeInSlack(state core.SlackPostState) bool {
	return state == core.SlackPostSent || state == core.SlackPostSending || state == core.SlackPostUnknown
}

// purgePost deletes a post that is in Slack, or may be, stores what became of it, and returns its state: it stays
// after a refusal.
func (f *follower) purgePost(ctx context.Context, p core.SlackPost) (core.SlackPostState, error) {
	if !maybeInSlack(p.State) {
		return p.State, nil
	}
	if p.State != core.SlackPostSent { // its answer was lost
		if err := core.Sleep(ctx, f.Settle); err != nil {
			return p.State, err
		}
	}
	err := f.tryOften(ctx, func() (err error) {
		if p.State != core.SlackPostSent {
			p.TS, err = f.findPost(ctx, p, "")
		}
		if err != nil || p.TS == "" {
			return err
		}
		return f.call(ctx, func(ctx context.Context, api *client) error {
			if p.Streaming { // one that is open may be protected; Slack may have ended it
				if _, _, err := api.StopStreamContext(ctx, p.Channel, p.TS); err != nil && !isRefused(err) {
					return err
				}
			}
			_, _, err := api.DeleteMessageContext(ctx, p.Channel, p.TS)
			return err
		})
	})
	switch {
	case errors.Is(err, core.ErrUnavailable) || ctx.Err() != nil:
		return p.State, err
	case err == nil && p.TS != "":
		p.State = core.SlackPostPurged
	case err == nil, isAnswer(err, "message_not_found", "thread_not_found"):
		p.State = core.SlackPostGone
	default:
		f.Logger.WarnContext(ctx, "post not deleted from Slack", "session_id", p.SessionID, "item", p.ItemID, "part", p.Part, "channel", p.Channel, "err", err)
		return p.State, nil
	}
	return p.State, f.Posts.Settle(ctx, p)
}

// tryOften repeats a call that may be repeated, after the time that Slack wants. It returns the
// error of a refusal, and ErrUnavailable if there is no answer.
func (f *follower) tryOften(ctx context.Context, call func() error) error {
	var err error
	for range maxPurgeTries {
		if err = call(); err == nil {
			return nil
		}
		means, wait := classify(err)
		if means == refused || wait == noTokenTime {
			return err
		}
		if err := core.Sleep(ctx, wait); err != nil {
			return err
		}
	}
	return &core.Error{Kind: core.ErrUnavailable, Err: err, Message: "posts in Slack are not deleted, since Slack does not answer; try again later"}
}
