package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// resumeRun gives the results of the client's tools to the run that waits for them, and goes on with the
// options of the request; the model stays.
func (a *API) resumeRun(ctx context.Context, r request) (activeRun, error) {
	run, results, err := r.conversation.callResults()
	if err != nil {
		return activeRun{}, err
	}
	before, err := a.awaitCanceled(ctx, r.caller, run)
	notAwaited := unknownCall(0, r.conversation.results[0].ToolCallID)
	if errors.Is(err, core.ErrNotFound) || before.Status == core.RunFailed || before.Status == core.RunCanceled {
		return activeRun{run: before}, notAwaited
	}
	if err != nil {
		return activeRun{}, err
	}
	session, err := a.Sessions.Get(ctx, r.tenant, before.SessionID)
	if err != nil {
		return activeRun{}, err
	}
	missing := slices.DeleteFunc(slices.Clone(before.Approvals), func(open core.Approval) bool {
		return slices.ContainsFunc(results, func(r core.CallResult) bool { return r.ToolCallID == open.ToolCallID })
	})
	if n := len(missing); n > 0 && n < len(before.Approvals) {
		return activeRun{}, core.OneFault("messages", "the run waits for %s as well: send the results of all calls of the answer before, after what a person has to approve", quoteShort(missing[0].Tool))
	}
	accepted, err := a.Chat.AnswerCalls(ctx, r.tenant, core.AnswerCalls{
		SessionID: session.ID, Results: results, Options: cmp.Or(r.options, &core.RunOptions{}),
	}, core.SessionAgent{Agent: before.Agent, Model: cmp.Or(before.Model, session.Model)})
	if e, ok := errors.AsType[*core.Error](err); ok && e.Code == core.CodeCallDecided { // otherwise
		return activeRun{run: before}, notAwaited
	}
	if err != nil {
		return activeRun{}, err
	}
	out := activeRun{run: accepted.Run, ignored: accepted.Ignored}
	if r.agent.Name != before.Agent || cmp.Or(r.model, session.Model, r.agent.Model) != cmp.Or(before.Model, session.Model, r.agent.Model) {
		out.ignored = append(out.ignored, "model")
	}
	if len(accepted.Events) > 0 {
		out.from.After = accepted.Events[0].Seq - 1
		return out, nil
	}
	for e, err := range a.Chat.WatchRun(ctx, r.tenant, out.run, core.Cursor{}) { // a client that has not got the answer sends its results again
		if err != nil {
			return activeRun{}, err
		}
		data, ok := e.Data.(core.ApprovalData)
		if ok && e.Type == core.EventApprovalDecided && data.Approval.ToolCallID == results[0].ToolCallID {
			out.from.After = e.Seq - 1
			return out, nil
		}
	}
	return activeRun{run: before}, notAwaited
}

// callResults returns the results at the end of the history, and the run whose calls they are of.
func (c conversation) callResults() (run core.RunID, results []core.CallResult, err error) {
	for i, m := range c.results {
		of, id, ok := parseCallID(m.ToolCallID)
		if !ok || run != "" && of != run {
			return "", nil, unknownCall(i, m.ToolCallID)
		}
		run = of
		results = append(results, core.CallResult{ToolCallID: id, Result: m.toCore("").Content})
	}
	return run, results, nil
}

// openResults returns the results before the new message that the session's run waits for. What
// else there is of results is in the log.
func (r request) openResults(session core.Session, at placement) []core.CallResult {
	run, results, err := r.conversation.callResults()
	if err != nil || session.Status != core.SessionWaiting || run != session.ActiveRunID || at.after != "" {
		return nil
	}
	return results
}

// placeResults places results without their calls, with which the history begins: the run that waits for them gets
// them with the new message; others take the place of those that the log has.
func (a *API) placeResults(c *gin.Context, r request, session core.Session, at *placement) error {
	if len(at.missing) != 1 || at.missing[0].messages[0].Role != "tool" {
		return nil
	}
	run, results, err := r.conversation.callResults()
	if err != nil {
		return err
	}
	if session.Status == core.SessionWaiting && run == session.ActiveRunID {
		at.missing = nil
		return nil
	}
	log, err := a.loadLog(c, r.caller, session.ID)
	isResult := map[string]bool{}
	for _, r := range results {
		isResult[r.ToolCallID] = true
	}
	var newest *logMessage // of the results that the run got
	for _, m := range log.messages {
		if m.run == run && isResult[m.call] && (newest == nil || m.seq > newest.seq) {
			newest = m
		}
	}
	if newest != nil {
		at.after, at.missing = log.replaceResults(newest.id, r.conversation.results)
	}
	return err
}

// replaceResults returns the results at the end of a path from the first one on that is another one now than the
// log has, and the message before them; none, and the end, if there is none.
func (t logTree) replaceResults(end core.MessageID, now []message) (after core.MessageID, missing []turn) {
	after = end
	var results []message
	replaced := 0 // from the end
	for m := t.messages[end]; m != nil && m.role == core.RoleTool; m = t.messages[m.parent] {
		results = append(results, message{Role: "tool", ToolCallID: m.call, Content: content{text: m.content}})
		for _, n := range now {
			_, id, _ := parseCallID(n.ToolCallID)
			text := n.toCore("").Content
			if (n.ToolCallID == m.call || id == m.call) && core.CleanText(text) != m.content {
				results[len(results)-1].Content.text = text
				after, replaced = m.parent, len(results)
			}
		}
	}
	if results = results[:replaced]; replaced > 0 {
		slices.Reverse(results)
		missing = []turn{{messages: results}}
	}
	return after, missing
}

// cancelReplaced cancels the run that waits for the results of a stateless request: with a message
// behind them a new run answers. If that fails, it waits until its calls expire.
func (a *API) cancelReplaced(ctx context.Context, r request) {
	id, _, err := r.conversation.callResults()
	if err != nil || id == "" {
		return
	}
	run, err := a.Runs.Get(ctx, r.tenant, id)
	if err != nil || run.Status != core.RunWaiting {
		return
	}
	if session, err := a.Sessions.Get(ctx, r.tenant, run.SessionID); err == nil && session.Temporary {
		_, _ = a.Chat.Cancel(ctx, r.tenant, id)
	}
}

// errUnknownCall is in the errors of unknownCall.
var errUnknownCall = errors.New("no call waits for the result")

// unknownCall returns the error for a result of a call that nobody waits for.
func unknownCall(i int, id string) error {
	detail := fmt.Sprintf("%s of tool_call_id %s (result %d)", errUnknownCall, quoteShort(id), i+1)
	return &core.Error{Kind: core.ErrInvalid, Message: "messages: " + detail, Fields: []core.FieldError{{Field: "messages", Detail: detail}}, Err: errUnknownCall}
}
