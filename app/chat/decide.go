package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"bobbin/app/core"
)

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
