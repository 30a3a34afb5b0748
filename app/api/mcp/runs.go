package mcp

import (
	"context"
	"fmt"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
)

// defaultWait is how long a call waits for a run. Many clients give up after a minute.
const defaultWait = 45 * time.Second

// maxAnswer bounds the answer in a result, in bytes.
const maxAnswer = 256 << 10

const maxApprovals = 20

// runResult is what became of a message.
type runResult struct {
	SessionID core.SessionID `json:"session_id"`
	RunID     core.RunID     `json:"run_id" jsonschema:"pass it to wait_for_run or cancel_run"`
	Status    core.RunStatus `json:"status" jsonschema:"queued, running, waiting (for a person's decision), succeeded, failed or canceled"`
	Answer    string         `json:"answer,omitempty" jsonschema:"the agent's answer"`
	Truncated bool           `json:"truncated,omitempty" jsonschema:"the answer is longer than this result may be"`
	Error     string         `json:"error,omitempty" jsonschema:"why the run failed"`
	Approvals []openApproval `json:"approvals,omitempty" jsonschema:"tool calls that a person must approve or deny before the run continues"`
	Next      string         `json:"next,omitempty" jsonschema:"what to do next"`
}

// openApproval is a tool call that waits for a person.
type openApproval struct {
	ApprovalID core.ApprovalID `json:"approval_id"`
	Tool       string          `json:"tool"`
	Arguments  string          `json:"arguments" jsonschema:"JSON, as the agent's model wrote it"`
}

// failed reports whether there is no answer because of a failure.
func (r runResult) failed() bool { return r.Status == core.RunFailed }

func (s *Server) addRunTools(server *sdk.Server) {
	addTool(s, server, tool{
		name: "send_message", title: "Send a message to an agent", scope: core.CanWrite, effect: adds, open: true,
		description: "Sends a message to an agent and returns its answer. Without session_id it starts a new session; with it, it continues that conversation, " +
			"which the agent remembers. If the answer takes longer than wait_seconds, the result has the status running or queued: call wait_for_run with the run_id, " +
			"do not send the message again.",
	}, s.sendMessage)
	addTool(s, server, tool{
		name: "wait_for_run", title: "Wait for an agent's answer", scope: core.CanRead, effect: reads,
		description: "Waits until a run that send_message started has ended or waits for a person's approval, for at most wait_seconds, and returns its answer.",
	}, s.waitForRunTool)
	addTool(s, server, tool{
		name: "cancel_run", title: "Cancel a run", scope: core.CanWrite, effect: replaces, answer: handlers.AnswerBytes,
		description: "Cancels a run that has not ended. What the agent has written so far stays in the conversation.",
	}, s.cancelRun)
}

type newMessage struct {
	Content     string         `json:"content" jsonschema:"the message"`
	SessionID   core.SessionID `json:"session_id,omitempty" jsonschema:"the conversation to continue; leave it out for a new one"`
	Agent       string         `json:"agent,omitempty" jsonschema:"the agent of a new session; leave it out for the default one"`
	Model       string         `json:"model,omitempty" jsonschema:"a configured model that answers in place of the agent's own"`
	Title       string         `json:"title,omitempty" jsonschema:"the title of a new session; leave it out to have one made"`
	WaitSeconds *float64       `json:"wait_seconds,omitempty" min:"0" max:"300" jsonschema:"how long to wait for the answer, 45 by default"`
}

// sendMessage sends the message and waits for its run.
func (s *Server) sendMessage(ctx context.Context, c call, in newMessage) (runResult, error) {
	if in.Content == "" {
		return runResult{}, core.Errorf(core.ErrInvalid, "content is empty: give the message for the agent")
	}
	created := in.SessionID == ""
	if created {
		session, err := s.Chat.CreateSession(ctx, c.tenant, core.Session{Agent: in.Agent, Title: in.Title, Source: core.SourceAPI})
		if err != nil {
			return runResult{}, err
		}
		in.SessionID = session.ID
	} else if in.Agent != "" || in.Title != "" {
		return runResult{}, core.Errorf(core.ErrInvalid, "agent and title are for a new session: leave them out, or session_id")
	}
	accepted, err := s.Chat.Send(ctx, c.tenant, core.SendMessage{SessionID: in.SessionID, Content: in.Content, Model: in.Model, Source: core.SourceAPI})
	if err != nil {
		if created { // nobody would use it
			_, _ = s.Chat.UpdateSession(context.WithoutCancel(ctx), c.tenant, in.SessionID, core.SessionPatch{Archived: new(true)})
		}
		return runResult{}, err
	}
	run, err := s.waitForRun(ctx, c, accepted.Run, in.WaitSeconds)
	if err != nil {
		run = accepted.Run // the message is accepted: an error would make the model send it again
	}
	return s.resultOf(ctx, c, run)
}

type runQuery struct {
	RunID       core.RunID `json:"run_id"`
	WaitSeconds *float64   `json:"wait_seconds,omitempty" min:"0" max:"300" jsonschema:"how long to wait, 45 by default; 0 returns the present state"`
}

func (s *Server) waitForRunTool(ctx context.Context, c call, in runQuery) (runResult, error) {
	run, err := s.Runs.Get(ctx, c.tenant, in.RunID)
	if err != nil {
		return runResult{}, err
	}
	if run, err = s.waitForRun(ctx, c, run, in.WaitSeconds); err != nil {
		return runResult{}, err
	}
	return s.resultOf(ctx, c, run)
}

type runParam struct {
	RunID core.RunID `json:"run_id"`
}

func (s *Server) cancelRun(ctx context.Context, c call, in runParam) (runResult, error) {
	run, err := s.Chat.Cancel(ctx, c.tenant, in.RunID)
	if err == nil && !run.Status.Ended() {
		run, err = s.waitForRun(ctx, c, run, nil)
	}
	if err != nil {
		return runResult{}, err
	}
	return s.resultOf(ctx, c, run)
}

// waitForRun returns the run when it has ended or waits for a person, or as it is after the time
// limit.
func (s *Server) waitForRun(ctx context.Context, c call, run core.Run, seconds *float64) (core.Run, error) {
	limit := defaultWait
	if seconds != nil {
		limit = time.Duration(*seconds * float64(time.Second))
	}
	if limit = min(limit, s.Streams.Wait); limit <= 0 {
		return run, nil
	}
	defer s.startProgress(ctx, c, run.ID)()
	out, err := s.Chat.WaitFor(ctx, c.tenant, run, limit)
	return out.Run, err
}

// startProgress tells the client that its call is waiting, until the returned function is called:
// by progress notifications in seconds if it asks for them, otherwise by comments in the event stream.
func (s *Server) startProgress(ctx context.Context, c call, run core.RunID) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var reports sync.WaitGroup
	begin := time.Now()
	reports.Go(func() {
		_ = core.Every(ctx, s.Streams.Stream.Heartbeat, func(ctx context.Context) {
			var err error
			waited := time.Since(begin)
			if token := c.request.Params.GetProgressToken(); token != nil {
				err = c.request.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
					ProgressToken: token, Progress: waited.Seconds(), Message: fmt.Sprintf("run %s has not ended yet", run),
				})
			} else if waited >= s.Streams.Stream.Heartbeat/2 {
				err = exchangeOf(ctx).stream.KeepAlive()
			}
			if err != nil {
				cancel()
			}
		})
	})
	return func() { cancel(); reports.Wait() }
}

// resultOf returns what the client reads of a run.
func (s *Server) resultOf(ctx context.Context, c call, run core.Run) (runResult, error) {
	r := runResult{SessionID: run.SessionID, RunID: run.ID, Status: run.Status}
	for _, a := range run.Approvals {
		if a.Status == core.ApprovalOpen && len(r.Approvals) < maxApprovals {
			r.Approvals = append(r.Approvals, openApproval{ApprovalID: a.ID, Tool: a.Tool, Arguments: core.Clip(a.Arguments, maxText)})
		}
	}
	switch {
	case run.Status == core.RunWaiting:
		r.Next = fmt.Sprintf("A person must approve or deny each of the approvals, with POST /api/v1/runs/%s/approvals/{approval_id} of Bobbin's API, bobbin chat, or in Slack; no tool can. Then call wait_for_run.", run.ID)
	case !run.Status.Ended():
		r.Next = "The run has not ended: call wait_for_run with the run_id. Do not send the message again."
	case run.Error != nil:
		r.Error = run.Error.Message
	}
	if run.Status.Ended() && run.AnswerID != "" {
		message, err := s.Messages.Get(ctx, c.tenant, run.SessionID, run.AnswerID)
		if err != nil {
			return r, err
		}
		r.Answer = core.Clip(message.Content, maxAnswer)
		r.Truncated = len(r.Answer) < len(message.Content)
	}
	return r, nil
}
