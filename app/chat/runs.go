package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"bobbin/app/core"
)

// WatchRun yields the events of a run of the scope, as the caller knows it, and ends without an error
// after the one that ends the run. With from.After 0 it begins with the run's
// first event. It ends at once when the run has ended and nothing of it comes
// after from. A resync event is passed on; if the run has ended then, it is the
// last one.
func (s *Service) WatchRun(ctx context.Context, tenant core.Tenant, run core.Run, from core.Cursor) iter.Seq2[core.Event, error] {
	return func(yield func(core.Event, error) bool) {
		if err := s.yieldEvents(ctx, tenant, run, from, yield); err != nil {
			yield(core.Event{}, err)
		}
	}
}

// yieldEvents returns nil when everything is said or the reader left.
func (s *Service) yieldEvents(ctx context.Context, tenant core.Tenant, run core.Run, from core.Cursor, yield func(core.Event, error) bool) (err error) {
	if !from.Live && from.After <= 0 {
		from.After = max(run.FirstEvent-1, 0)
	}
	until := int64(0) // the run has ended by this event; 0 = it had not when we began
	if run.Status.Ended() {
		if until, err = s.Events.Last(ctx, tenant, run.SessionID); err != nil {
			return fmt.Errorf("last event of session %s: %w", run.SessionID, err)
		}
		if from.Live || from.After >= until {
			return nil
		}
	}
	for e, err := range s.Feed.WatchRun(ctx, tenant, run, from) {
		if err != nil {
			return err
		}
		isResync := e.Type == core.EventResync
		if (isResync || e.RunID == run.ID) && (!yield(e, nil) || e.Type.EndsRun()) || !isResync && until > 0 && e.Seq >= until {
			return nil
		}
		if isResync {
			if run, err := s.Runs.Get(ctx, tenant, run.ID); err != nil || run.Status.Ended() {
				return err
			}
		}
	}
	return nil
}

// rewatch is the pause before a watch that was dropped begins again.
const rewatch = 100 * time.Millisecond

// Wait returns the run when it has ended, in whatever way, or waits for a person's
// decision. It returns earlier only with an error: the cause of ctx's end, ErrNotFound, or a fault of storage.
func (s *Service) Wait(ctx context.Context, tenant core.Tenant, run core.Run) (core.Outcome, error) {
	for {
		out, err := s.untilEnd(ctx, tenant, run)
		if ctx.Err() != nil {
			return core.Outcome{}, context.Cause(ctx)
		}
		if out.Run.Status.Ended() || err != nil && !errors.Is(err, core.ErrUnavailable) {
			return out, err
		}
		// The events only say when to look: the row is the truth.
		now, err := s.Runs.Get(ctx, tenant, run.ID)
		if errors.Is(err, core.ErrNoDatabase) && ctx.Err() == nil {
			now, err = core.Run{}, nil // it goes on when the database is there again
		}
		if err != nil || now.Status.Ended() || now.Status == core.RunWaiting {
			return core.Outcome{Run: now}, err
		}
		_ = core.Sleep(ctx, rewatch) // the next watch returns the cause of its end
	}
}

// WaitFor is Wait for at most the limit. It returns the run as it is then, or if only the waiting failed: an
// error would make the caller send its message again.
func (s *Service) WaitFor(ctx context.Context, tenant core.Tenant, run core.Run, limit time.Duration) (core.Outcome, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err := s.Wait(limited, tenant, run)
	harmless := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, core.ErrTimeout) || errors.Is(err, core.ErrUnavailable)
	if harmless && ctx.Err() == nil {
		out.Run, err = s.Runs.Get(ctx, tenant, run.ID)
	}
	return out, err
}

// untilEnd returns when the run has ended, with what its events say of that if it was not at its end
// already, or waits for a decision, or why it could not see that.
func (s *Service) untilEnd(ctx context.Context, tenant core.Tenant, run core.Run) (out core.Outcome, err error) {
	for e, err := range s.WatchRun(ctx, tenant, run, core.Cursor{}) {
		if err != nil {
			return core.Outcome{}, err
		}
		switch d := e.Data.(type) {
		case core.MessageData:
			out.Answer = &d.Message
		case core.RunData:
			if e.Type.EndsRun() && !run.Status.Ended() {
				out.Run, out.Run.Input = d.Run, run.Input // events are without it
				if out.Answer != nil && out.Answer.ID != d.Run.AnswerID {
					out.Answer = nil
				}
			}
			if e.Type != core.EventRunWaiting {
				continue
			}
			// It may have gone on long since.
			if now, err := s.Runs.Get(ctx, tenant, run.ID); err != nil || now.Status == core.RunWaiting {
				return core.Outcome{}, err
			}
		}
	}
	return out, nil
}

// Cancel ends a run: a queued one at once, one at work as soon as it can be
// stopped; what it has said so far is kept. It returns the run as it is then. A run
// that has ended stays as it is, so Cancel may be repeated.
func (s *Service) Cancel(ctx context.Context, tenant core.Tenant, id core.RunID) (core.Run, error) {
	run, events, err := s.Runs.RequestCancel(ctx, tenant, id)
	if err != nil {
		return core.Run{}, err
	}
	s.Feed.Publish(context.WithoutCancel(ctx), events)
	switch {
	case run.Suspended(): // it waited for a decision: nobody is at work on it
		s.Work.Next(context.WithoutCancel(ctx), run.SessionID)
	case !run.Status.Ended():
		s.Work.Cancel(id) // another process sees the request by its heartbeat
	}
	return run, nil
}

// Stop cancels the session's active run, if there is one, and keeps what it has said so far.
// Queued runs stay: the next one begins.
func (s *Service) Stop(ctx context.Context, tenant core.Tenant, id core.SessionID) error {
	active, err := s.Runs.Active(ctx, tenant, id)
	if errors.Is(err, core.ErrNotFound) {
		_, err = s.Sessions.Get(ctx, tenant, id)
		return err
	}
	if err == nil {
		_, err = s.Cancel(ctx, tenant, active.ID)
	}
	return err
}

// Decide answers a question of a run: whether a tool may start, also with other arguments, or
// what the result of its call is. When it returns without error the answer counts, and the run
// goes on once all that it asked is answered. The same answer may be given again. Errors:
// ErrConflict if the question was answered otherwise, expired, or needs no answer any more;
// ErrNotFound; ErrTooLarge for a result; ErrInvalid for a comment that is too long, arguments
// that are no JSON object, and an answer to a question of another kind.
func (s *Service) Decide(ctx context.Context, tenant core.Tenant, run core.RunID, id core.ApprovalID, d core.ApprovalDecision) (core.Approval, error) {
	d, err := s.checkDecision(ctx, tenant, d)
	if err != nil {
		return core.Approval{}, err
	}
	d.By = cmp.Or(d.By, tenant.User, tenant.Owner)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptTime)
	defer cancel()
	decided, err := s.Runs.Decide(ctx, tenant, run, id, d)
	if err != nil {
		return core.Approval{}, err
	}
	s.resumeDecided(ctx, decided)
	return decided.Approval, nil
}

// AnswerCalls gives calls of a client's tools their results, all of them or none, and returns
// their run, which goes on once all that it asked is answered. The same results may be given
// again. Errors: ErrNotFound with core.CodeNoToolCall for a call that no run of the session
// waits for, or waited for; ErrConflict with core.CodeCallDecided for one that has another
// result or needs none any more; ErrTooLarge; ErrInvalid for no results, a call twice, and
// calls of several runs. Options are checked as those of a message to the agent; their errors apply.
func (s *Service) AnswerCalls(ctx context.Context, tenant core.Tenant, in core.AnswerCalls, of core.SessionAgent) (core.Accepted, error) {
	in, err := s.checkResults(ctx, tenant, in)
	if err != nil {
		return core.Accepted{}, err
	}
	var out core.Accepted
	if in.Options != nil {
		if in.Options, out.Ignored, err = s.optionsFor(of, "", in.Options); err == nil {
			err = s.Stored.Admit(ctx, tenant, in.Options.StoredBytes())
		}
		if err != nil {
			return out, err
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), acceptTime)
	defer cancel()
	decided, err := s.Runs.AnswerCalls(ctx, tenant, in)
	if err != nil {
		return out, err
	}
	s.resumeDecided(ctx, decided)
	out.Run, out.Events = decided.Run, decided.Events
	return out, nil
}

// checkResults returns the results as they are stored.
func (s *Service) checkResults(ctx context.Context, tenant core.Tenant, in core.AnswerCalls) (core.AnswerCalls, error) {
	var f faults
	results := in.Results
	in.Results, in.By, in.Options = nil, cmp.Or(tenant.User, tenant.Owner), f.checkOptions(in.Options)
	if len(results) == 0 || len(results) > maxResults {
		f.Add("results", "must have 1 to %d results", maxResults)
	}
	known := map[string]bool{}
	for i, r := range results {
		if known[r.ToolCallID] {
			f.Add(fmt.Sprintf("results[%d].tool_call_id", i), "is there twice")
		}
		known[r.ToolCallID] = true
		var err error
		if r.Result, err = s.admitResult(ctx, tenant, r.Result); err != nil {
			return in, err
		}
		r.ToolCallID = core.CleanText(r.ToolCallID)
		in.Results = append(in.Results, r)
	}
	return in, f.Err()
}

// maxResults bounds the results that are given at once.
const maxResults = 1000

// resumeDecided publishes a decision and lets the run go on if it waits for no other.
func (s *Service) resumeDecided(ctx context.Context, d core.Decided) {
	s.Feed.Publish(ctx, d.Events)
	if d.Run.Suspended() {
		s.Work.Next(ctx, d.Run.SessionID)
	}
}

// checkDecision returns the decision as it is stored.
func (s *Service) checkDecision(ctx context.Context, tenant core.Tenant, d core.ApprovalDecision) (core.ApprovalDecision, error) {
	var f faults
	d.Comment = f.Text("comment", d.Comment, maxComment)
	switch {
	case d.Arguments != "" && !d.Approve:
		f.Add("arguments", "are for an approval: they take the place of the model's")
	case d.IsError && d.Result == nil:
		f.Add("is_error", "is for a result")
	}
	d.Arguments = f.Text("arguments", d.Arguments, s.Limits.Message)
	if d.Arguments != "" { // the tool checks them against its schema, as it does with the model's
		if err := core.CheckJSON([]byte(d.Arguments), core.MaxBodyValues); err != nil {
			f.Add("arguments", "%s", core.ShownMessage(err, "internal error"))
		} else if !strings.HasPrefix(strings.TrimSpace(d.Arguments), "{") || !json.Valid([]byte(d.Arguments)) {
			f.Add("arguments", "must be a JSON object")
		}
	}
	if err := f.Err(); err != nil {
		return d, err
	}
	var err error
	if d.Respond, err = s.admitResult(ctx, tenant, d.Respond); err != nil || d.Result == nil {
		return d, err
	}
	result, err := s.admitResult(ctx, tenant, *d.Result)
	d.Result = &result
	return d, err
}

// admitResult returns the result of a call as it is stored; ErrTooLarge for one that is longer
// than a tool's may be, or for which there is no room.
func (s *Service) admitResult(ctx context.Context, tenant core.Tenant, text string) (string, error) {
	clean := core.CleanText(text)
	if size := max(len(text), len(clean)); size > s.Limits.Result {
		return "", core.Errorf(core.ErrTooLarge, "the result has %d bytes, at most %d are allowed: shorten it", size, s.Limits.Result)
	}
	if clean == "" { // an approval or a denial stores nothing
		return "", nil
	}
	return clean, s.Stored.Admit(ctx, tenant, int64(len(clean)))
}
