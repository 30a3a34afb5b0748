package slack

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/slack-go/slack"

	"bobbin/app/core"
)

// Times of a follower.
const (
	tickEvery   = time.Second
	renewEvery  = leaseTime / 3
	idleTime    = 2 * time.Second  // without an event and a run at work
	stuckTime   = 10 * time.Minute // without an event of a run at work
	retryTime   = 10 * time.Second // after an error of the database, or without a connection to Slack
	unclearTime = time.Second      // after a call whose answer was lost
	noTokenTime = 5 * time.Minute  // without a token that works
)

// errIdle ends a follower: there is nothing more to post.
var errIdle = errors.New("nothing happens in the session")

// follower posts to one thread what happens in its session. It has the thread's lease, and
// belongs to one goroutine.
type follower struct {
	*Outbox
	core.SlackBacklog

	tenant      core.Tenant
	seq         int64 // of the last event that was handled
	renewed     time.Time
	lastEvent   time.Time
	active      bool              // a run is at work
	asker       slackPerson       // who asked; zero = nobody in Slack did
	status      string            // of the agent, as it was shown last; empty = unknown
	draft       *draft            // of the message that is being written; nil = none
	toolMessage core.MessageID    // the last one that has only tool calls
	tools       map[string]string // names by the ids of their calls
}

func newFollower(s *Outbox, b core.SlackBacklog) *follower {
	now := time.Now()
	return &follower{Outbox: s, SlackBacklog: b, tenant: core.Tenant{Owner: b.Owner}, tools: map[string]string{}, seq: b.SentSeq, renewed: now, lastEvent: now}
}

// run follows the session until nothing happens any more, and lets go of the thread.
func (f *follower) run(ctx context.Context) {
	err := f.follow(ctx)
	rest := context.WithoutCancel(ctx)
	var later *laterError
	after, reason := time.Duration(0), ""
	switch {
	case errors.Is(err, core.ErrStale), errors.Is(err, core.ErrNotFound):
		return // it belongs to another process, or is gone
	case errors.Is(err, errIdle), ctx.Err() != nil, errors.Is(err, core.ErrUnavailable):
	case errors.As(err, &later):
		after = min(later.after.Truncate(time.Second)+time.Second, time.Hour)
		reason = core.Clip(later.cause.Error(), maxError)
		level := slog.LevelInfo
		if isTokenRefused(later.cause) {
			level = slog.LevelError
		}
		f.Logger.Log(ctx, level, "thread of Slack waits", "session_id", f.SessionID, "err", err)
	default:
		after, reason = retryTime, "an error that is in the log"
		f.Logger.WarnContext(ctx, "thread of Slack not continued", "session_id", f.SessionID, "err", err)
	}
	f.storeCall(rest, "release a thread", func(ctx context.Context) error {
		if err := f.Threads.Advance(ctx, f.Worker, f.SessionID, f.seq, leaseTime); err != nil && !errors.Is(err, core.ErrStale) {
			return err
		}
		return f.Threads.Release(ctx, f.Worker, f.SessionID, after, reason)
	})
}

// follow handles events until an error, errIdle among them, ends it.
func (f *follower) follow(ctx context.Context) error {
	session, err := f.Sessions.Get(ctx, f.tenant, f.SessionID)
	if err != nil {
		return err
	}
	f.active, f.asker = session.Status == core.SessionRunning, slackPersonOf(session.UserID)
	posts, err := f.Posts.Unfinished(ctx, f.SessionID)
	if err != nil {
		return err
	}
	for _, p := range posts {
		if p.State == core.SlackPostSending {
			if p, err = f.reconcile(ctx, p); err != nil {
				return err
			}
		}
		if p.State == core.SlackPostSent && p.Streaming {
			if err := f.endStray(ctx, p); err != nil {
				return err
			}
		}
	}
	watch, stop := context.WithCancel(ctx)
	defer stop()
	events, failed := make(chan core.Event), make(chan error, 1)
	go func() {
		for e, err := range f.Feed.Watch(watch, f.tenant, f.SessionID, core.Cursor{After: f.SentSeq}) {
			if err != nil {
				failed <- err
				return
			}
			select {
			case events <- e:
			case <-watch.Done():
				return
			}
		}
	}()
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for {
		select {
		case e := <-events:
			err = f.handle(ctx, e)
		case err = <-failed:
		case <-tick.C:
			err = f.tick(ctx)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// handle posts what the event reports. When it returns nil, that is posted.
func (f *follower) handle(ctx context.Context, e core.Event) error {
	f.lastEvent = time.Now()
	if err := f.handleType(ctx, e); err != nil {
		return err
	}
	f.showStatus(ctx, e.Type)
	f.seq = max(f.seq, e.Seq)
	return nil
}

func (f *follower) handleType(ctx context.Context, e core.Event) error {
	switch d := e.Data.(type) {
	case core.RunData:
		if f.active = e.Type == core.EventRunStarted; f.active {
			f.asker = cmp.Or(slackPersonOf(d.Run.User), f.asker)
			return nil
		}
		if err := f.closeDraft(ctx); err != nil || e.Type != core.EventRunFailed { // the end of what it wrote
			return err
		}
		return f.reportFailure(ctx, d.Run)
	case core.DeltaData:
		if e.Type == core.EventMessageDelta {
			return f.addDelta(ctx, d)
		}
	case core.DiscardedData:
		return f.discardMessage(ctx, d.MessageID)
	case core.ToolStartedData:
		f.addTask(d.ToolCallID, d.Name, slack.TaskCardStatusInProgress)
	case core.ToolFinishedData:
		status := slack.TaskCardStatusComplete
		if d.Status == core.MessageFailed {
			status = slack.TaskCardStatusError
		}
		f.addTask(d.ToolCallID, "", status)
	case core.ApprovalData:
		return f.showApproval(ctx, d.Approval)
	case core.SessionData:
		if e.Type == core.EventSessionUpdated && d.Path != nil {
			return f.markPath(ctx)
		}
	case core.MessageData:
		switch e.Type {
		case core.EventMessageCreated:
			return f.postMessage(ctx, d.Message)
		case core.EventMessageUpdated:
			return f.updateMessage(ctx, d.Message)
		}
	}
	if e.Type == core.EventResync {
		return f.postMissing(ctx)
	}
	return nil
}

// tick renews the lease, and ends the follower when nothing happens.
func (f *follower) tick(ctx context.Context) error {
	quiet := time.Since(f.lastEvent)
	if quiet > stuckTime || quiet > idleTime && !f.active {
		return errIdle
	}
	if err := f.flushDraft(ctx); err != nil {
		return err
	}
	if time.Since(f.renewed) < renewEvery && f.seq == f.SentSeq {
		return nil
	}
	if err := f.Threads.Advance(ctx, f.Worker, f.SessionID, f.seq, leaseTime); err != nil {
		return err
	}
	f.renewed, f.SentSeq = time.Now(), f.seq
	return nil
}

// statusTime bounds a call that says what the agent does: posts wait for it.
const statusTime = 5 * time.Second

// showStatus lets Slack show what the agent does after the event. It is not repeated: without it
// only the button is missing. Where Slack has no such method, it is not called any more.
func (f *follower) showStatus(ctx context.Context, event core.EventType) {
	status := ""
	switch event {
	case core.EventRunStarted:
		status = slack.AgentSessionStatusProcessing // people have a button to stop it
	case core.EventRunWaiting:
		status = slack.AgentSessionStatusSuspended
	case core.EventRunSucceeded, core.EventRunFailed, core.EventRunCanceled:
		status = slack.AgentSessionStatusActive
	default: // what it showed before
	}
	if _, none := f.noStatus.Load(f.Team); none || status == "" || status == f.status {
		return
	}
	f.status = status
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	api, err := f.Clients.of(ctx, f.Team)
	if err == nil {
		_, err = api.SetAgentSessionStatusContext(ctx, slack.AgentSessionSetStatusParameters{ChannelID: f.Channel, ThreadTS: f.Thread, Status: status})
	}
	if isUnsupported(err) {
		f.noStatus.Store(f.Team, true)
	} else if err != nil {
		f.Logger.DebugContext(ctx, "status of the agent not shown in Slack", "session_id", f.SessionID, "status", status, "err", err)
	}
}

// isUnsupported reports whether the error says that the app has no such method in the workspace.
func isUnsupported(err error) bool {
	return isAnswer(err, "feature_not_enabled", "method_deprecated", "unknown_method", "missing_scope", "not_allowed_token_type")
}
