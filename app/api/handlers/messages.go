package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

// Messages answers /api/v1/sessions/{id}/messages.
type Messages struct {
	chat     chatService
	transfer transferService
	files    *Files
	sessions core.SessionStore
	messages core.MessageStore
	runs     core.RunStore
	streams  *StreamLimiter
}

// NewMessages returns the handlers of messages.
func NewMessages(s Services, files *Files, streams *StreamLimiter) *Messages {
	return &Messages{chat: s.Chat, transfer: s.Transfer, files: files, sessions: s.Sessions, messages: s.Messages, runs: s.Runs, streams: streams}
}

// List answers a page of messages in the order of their seq, or newest first. The field
// pending holds the queued messages: accepted, not in the log yet, with seq 0. The field
// last_event_id says where to start with the session's events, so that nothing is missed
// between the two requests: earlier events are reflected in this answer.
func (h *Messages) List(c *gin.Context) error {
	q := readQuery(c, "before", "after", "order", "all_branches", "limit", "cursor")
	query := core.MessageQuery{PageQuery: q.pageParams(), Before: q.numberParam("before"), After: q.numberParam("after"), AllBranches: q.boolParam("all_branches"),
		Descending: q.choiceParam("order", "asc", "desc") == "desc"}
	if err := q.err(); err != nil {
		return err
	}
	session, err := sessionParam(c, h.sessions)
	if err != nil {
		return err
	}
	hold := holdOf(c)
	if err := hold.Resize(c.Request.Context(), core.MaxMessagePageBytes+core.MaxPageBytes); err != nil {
		return err
	}
	// Read the session first, then the queue, then the log: a message that moves in between
	// is read twice rather than missed.
	ctx, tenant := c.Request.Context(), scopeOf(c)
	queued, err := h.runs.Pending(ctx, tenant, session.ID)
	if err != nil {
		return err
	}
	page, err := h.messages.List(ctx, tenant, session.ID, query)
	if err != nil {
		return err
	}
	pending := make([]core.Message, 0, len(queued))
	for _, run := range queued {
		inLog := run.Input.Regenerate || slices.ContainsFunc(page.Items, func(m core.Message) bool { return m.ID == run.UserMessageID })
		if !inLog {
			pending = append(pending, run.UserMessage())
		}
	}
	n := 0
	for _, m := range page.Items {
		n += len(m.Content)
		for _, call := range m.ToolCalls {
			n += len(call.Arguments)
		}
		for _, part := range m.Parts {
			n += len(part.Text)
		}
	}
	hold.Keep(core.MaxPageBytes + int64(n))
	return writePage(c, page, field{"pending", pending}, field{"last_event_id", lastEventID(session.LastEventSeq)})
}

// newMessage is the body of Send.
type newMessage struct {
	Content         string          `json:"content"`
	ClientMessageID string          `json:"client_message_id"`
	Model           string          `json:"model"`
	Multitask       core.Multitask  `json:"multitask"`
	UserID          string          `json:"user_id"`
	Author          string          `json:"author"`
	Source          core.Source     `json:"source"`
	Metadata        object          `json:"metadata"`
	Parts           []filePart      `json:"parts"`
	Webhook         *ops.NewWebhook `json:"webhook"`
	Options         *ops.RunOptions `json:"options"`
	After           core.MessageID  `json:"after"`

	Run        *bool           `json:"run"` // false = append to the log without a run
	Role       core.Role       `json:"role"`
	ToolCalls  []core.ToolCall `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
	ToolName   string          `json:"tool_name"`
	CreatedAt  *time.Time      `json:"created_at"`
	AuthorID   string          `json:"author_id"`
}

// runAnswer is the answer of Send when the run has ended.
type runAnswer struct {
	Run     core.Run      `json:"run"`
	Message *core.Message `json:"message,omitempty"` // nil = the run ended without an answer
}

// acceptedAnswer is the answer to a message whose run has not ended.
type acceptedAnswer struct {
	Run core.Run `json:"run"`
}

// Send accepts a message and runs the session's agent. It answers with the run's events,
// after the run's end, or immediately, as the headers Accept and Prefer ask for. A
// repeated client_message_id gets the first run. A message with run: false is only
// appended to the log.
func (h *Messages) Send(c *gin.Context) error {
	id := core.SessionID(c.Param("id"))
	body, err := h.readNewMessage(c, id)
	if err != nil {
		return err
	}
	if !body.wantsRun() {
		return h.appendOnly(c, id, body)
	}
	message, err := body.toSendMessage(id)
	if err != nil {
		return err
	}
	return h.sendAndAnswer(c, message)
}

// sendAndAnswer sends the message and answers about its run.
func (h *Messages) sendAndAnswer(c *gin.Context, m core.SendMessage) error {
	held, err := h.acquireForRun(c)
	if err != nil {
		return err
	}
	defer h.streams.releaseSlot(held)
	m.RequestHash = HashOf(c, m.ClientMessageID)
	accepted, err := h.chat.Send(c.Request.Context(), scopeOf(c), m)
	if err != nil {
		return err
	}
	return h.answerRun(c, held, accepted.Run)
}

// acquireForRun acquires the slot of a request that streams its run or waits for it; nil for
// one that is answered immediately. It comes before anything is changed.
func (h *Messages) acquireForRun(c *gin.Context) (*slot, error) {
	prefer := readPreference(c.Request.Header)
	if prefer.async && prefer.wait == 0 && !wantsStream(c.Request.Header) {
		return nil, nil
	}
	return h.streams.acquireSlot(c)
}

// answerRun answers about an accepted run as the headers Accept and Prefer ask for: with its
// events, after its end, or immediately. The header Location names the run in any case.
func (h *Messages) answerRun(c *gin.Context, held *slot, run core.Run) error {
	tenant := scopeOf(c)
	c.Header("Location", runPath(run.ID))
	switch {
	case held == nil:
		c.Header("Preference-Applied", "respond-async")
		return writeJSON(c, http.StatusAccepted, acceptedAnswer{Run: run})
	case wantsStream(c.Request.Header):
		return h.streams.serveRun(c, held, func(ctx context.Context) iter.Seq2[core.Event, error] {
			return h.chat.WatchAccepted(ctx, tenant, run)
		})
	default:
		return h.waitForRun(c, held, run.ID)
	}
}

// waitForRun answers when the run has ended or waits for an approval, or after the time
// limit with the current run. It releases the slot before.
func (h *Messages) waitForRun(c *gin.Context, held *slot, id core.RunID) error {
	ReleaseBody(c)
	limit := h.streams.limits.Wait
	if wait := readPreference(c.Request.Header).wait; wait > 0 {
		limit = min(limit, wait)
	}
	run, err := AwaitRun(c.Request.Context(), h.chat, h.runs, id, limit)
	h.streams.releaseSlot(held)
	switch {
	case err != nil:
		return err
	case run.Status.Ended():
		result := runAnswer{Run: run}
		if run.AnswerID != "" {
			message, err := h.messages.Get(c.Request.Context(), scopeOf(c), run.SessionID, run.AnswerID)
			if err != nil {
				return err
			}
			result.Message = &message
		}
		return writeJSON(c, http.StatusOK, result)
	default:
		return writeJSON(c, http.StatusAccepted, acceptedAnswer{Run: run})
	}
}

// toSendMessage returns the message as a core.SendMessage.
func (body newMessage) toSendMessage(id core.SessionID) (core.SendMessage, error) {
	source, err := sourceOf(body.Source)
	if err != nil {
		return core.SendMessage{}, err
	}
	return core.SendMessage{
		SessionID: id, User: body.UserID, After: body.After, Content: body.Content, ClientMessageID: body.ClientMessageID, Model: body.Model,
		Multitask: body.Multitask, Source: source, Author: body.Author, Metadata: json.RawMessage(body.Metadata),
		Parts: partsOf(body.Parts), Webhook: body.Webhook.ToCore(), Options: (*core.RunOptions)(body.Options),
	}, nil
}

func runPath(id core.RunID) string { return "/api/v1/runs/" + string(id) }

// AwaitRun returns the caller's run when it has ended or waits for an approval, and as it is after the
// time limit or if only the waiting failed: an error would make the caller send its message again.
func AwaitRun(ctx context.Context, chat chatService, runs core.RunStore, id core.RunID, limit time.Duration) (core.Run, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	caller, _ := core.IdentityFrom(ctx)
	run, err := chat.Wait(limited, caller.Tenant(), id)
	if err != nil {
		return runAfterTimeout(ctx, runs, id, err)
	}
	return run, nil
}

// runAfterTimeout returns the caller's run as it is after err ended the wait for it. It returns
// err if that is not a timeout. ctx is the request's, without the limit of the wait.
func runAfterTimeout(ctx context.Context, runs core.RunStore, id core.RunID, err error) (core.Run, error) {
	harmless := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, core.ErrTimeout) || errors.Is(err, core.ErrUnavailable)
	if !harmless || ctx.Err() != nil {
		return core.Run{}, err
	}
	caller, _ := core.IdentityFrom(ctx)
	return runs.Get(ctx, caller.Tenant(), id)
}
