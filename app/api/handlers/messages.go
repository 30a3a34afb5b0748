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

	"bobbin/app/core"
)

// Messages answers /api/v1/sessions/{id}/messages.
type Messages struct {
	chat     messageService
	transfer transferService
	files    *Files
	sessions sessionStore
	messages messageStore
	runs     runStore
	streams  *Streams
}

// NewMessages returns the handlers of messages.
func NewMessages(s Services, files *Files, streams *Streams) *Messages {
	return &Messages{chat: s.Chat, transfer: s.Transfer, files: files, sessions: s.Sessions, messages: s.Messages, runs: s.Runs, streams: streams}
}

// messagePage is a page of messages, and those that wait for their turn.
type messagePage struct {
	core.Page[core.Message]
	Pending []core.Message `json:"pending"` // accepted, not in the log yet: seq 0
	// LastEventID is where to begin with the session's events: what happened up to it
	// is in this answer, so that nothing is missed between the two requests.
	LastEventID int64 `json:"last_event_id"`
}

// List answers a page of messages in the order of their seq.
func (h *Messages) List(c *gin.Context) error {
	q := readQuery(c, "before", "after", "all_branches", "limit", "cursor")
	query := core.MessageQuery{PageQuery: q.page(), Before: q.number("before"), After: q.number("after"), AllBranches: q.flag("all_branches")}
	if err := q.err(); err != nil {
		return err
	}
	session, err := sessionParam(c, h.sessions)
	if err != nil {
		return err
	}
	// First the session, then those that wait, then the log: what moves in between is
	// seen twice then, and not never.
	ctx, scope := c.Request.Context(), scopeOf(c)
	queued, err := h.runs.Pending(ctx, scope, session.ID)
	if err != nil {
		return err
	}
	page, err := h.messages.List(ctx, scope, session.ID, query)
	if err != nil {
		return err
	}
	pending := pendingOf(queued, page.Items)
	return answer(c, http.StatusOK, messagePage{Page: listOf(page), Pending: pending, LastEventID: session.LastEventSeq})
}

// pendingOf returns the messages of the queued runs that are not in the log.
func pendingOf(queued []core.Run, logged []core.Message) []core.Message {
	pending := make([]core.Message, 0, len(queued))
	for _, run := range queued {
		inLog := run.Input.Regenerate || slices.ContainsFunc(logged, func(m core.Message) bool { return m.ID == run.UserMessageID })
		if !inLog {
			pending = append(pending, run.UserMessage())
		}
	}
	return pending
}

// newMessage is the body of Send.
type newMessage struct {
	Content         string         `json:"content"`
	ClientMessageID string         `json:"client_message_id"`
	Model           string         `json:"model"`
	Multitask       core.Multitask `json:"multitask"`
	UserID          string         `json:"user_id"`
	Author          string         `json:"author"`
	Source          core.Source    `json:"source"`
	Metadata        object         `json:"metadata"`
	Parts           []filePart     `json:"parts"`
	Webhook         *webhook       `json:"webhook"`

	Run        *bool           `json:"run"` // false = it is put into the log and not answered
	Role       core.Role       `json:"role"`
	ToolCalls  []core.ToolCall `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
	ToolName   string          `json:"tool_name"`
	CreatedAt  *time.Time      `json:"created_at"`
}

// runAnswer is the answer of Send, whole or as far as it has come.
type runAnswer struct {
	Run     core.Run      `json:"run"`
	Message *core.Message `json:"message"` // the answer; null = the run ended without one
}

// acceptedAnswer is the answer to a message whose run has not ended.
type acceptedAnswer struct {
	Run core.Run `json:"run"`
}

// Send accepts a message and runs the session's agent. It answers with the run's
// events, or after the run's end, or at once, as the caller asks by Accept and
// Prefer. A repeated client_message_id is answered with the run of the first time.
// A message with run: false is put into the log and nothing runs.
func (h *Messages) Send(c *gin.Context) error {
	id, err := idParam[core.SessionID](c, "session")
	if err != nil {
		return err
	}
	body, err := h.readNewMessage(c, id)
	if err != nil {
		return err
	}
	if !body.runs() {
		return h.append(c, id, body)
	}
	message, err := body.message(id)
	if err != nil {
		return err
	}
	return h.run(c, h.sending(message))
}

// order has the agent run, and returns when that is accepted.
type order func(ctx context.Context, scope core.Scope) (core.Accepted, error)

func (h *Messages) sending(m core.SendMessage) order {
	return func(ctx context.Context, scope core.Scope) (core.Accepted, error) { return h.chat.Send(ctx, scope, m) }
}

// run carries the order out and answers as the caller asks by Accept and Prefer.
func (h *Messages) run(c *gin.Context, order order) error {
	prefer := readPreference(c.Request.Header)
	switch {
	case wantsStream(c.Request.Header):
		return h.stream(c, order)
	case prefer.async && prefer.wait == 0:
		accepted, err := h.accept(c, order)
		if err != nil {
			return err
		}
		c.Header("Preference-Applied", "respond-async")
		return answer(c, http.StatusAccepted, acceptedAnswer{Run: accepted.Run})
	default:
		return h.wait(c, order, prefer)
	}
}

// message returns the message that is to be answered.
func (body newMessage) message(id core.SessionID) (core.SendMessage, error) {
	source, err := sourceOf(body.Source)
	if err != nil {
		return core.SendMessage{}, err
	}
	if err := checkMultitask(body.Multitask); err != nil {
		return core.SendMessage{}, err
	}
	return core.SendMessage{
		SessionID: id, User: body.UserID, Content: body.Content, ClientMessageID: body.ClientMessageID, Model: body.Model,
		Multitask: body.Multitask, Source: source, Author: body.Author, Metadata: json.RawMessage(body.Metadata),
		Parts: partsOf(body.Parts), Webhook: body.Webhook.core(),
	}, nil
}

func checkMultitask(m core.Multitask) error {
	switch m {
	case "", core.MultitaskEnqueue, core.MultitaskReject, core.MultitaskInterrupt:
		return nil
	default:
		return invalid([]core.FieldError{{Field: "multitask", Detail: "must be enqueue, reject or interrupt"}})
	}
}

// accept hands the order over. From then on the header says where its run is,
// whatever becomes of the answer.
func (h *Messages) accept(c *gin.Context, order order) (core.Accepted, error) {
	accepted, err := order(c.Request.Context(), scopeOf(c))
	if err != nil {
		return core.Accepted{}, err
	}
	c.Header("Location", runPath(accepted.Run.ID))
	return accepted, nil
}

func runPath(id core.RunID) string { return "/api/v1/runs/" + string(id) }

// stream answers with the run's events from its first one on.
func (h *Messages) stream(c *gin.Context, order order) error {
	scope := scopeOf(c)
	place, err := h.streams.hold(c)
	if err != nil {
		return err
	}
	defer h.streams.release(place)
	accepted, err := h.accept(c, order)
	if err != nil {
		return err
	}
	return h.streams.run(c, place, func(ctx context.Context) iter.Seq2[core.Event, error] {
		return h.chat.WatchRun(ctx, scope, accepted.Run.ID, core.From{})
	})
}

// wait answers when the run has ended or waits for a decision, or after the time limit
// with the run as it is then.
func (h *Messages) wait(c *gin.Context, order order, prefer preference) error {
	scope := scopeOf(c)
	place, err := h.streams.hold(c)
	if err != nil {
		return err
	}
	defer h.streams.release(place)
	accepted, err := h.accept(c, order)
	if err != nil {
		return err
	}
	limit := h.streams.limits.Wait
	if prefer.wait > 0 {
		limit = min(limit, prefer.wait)
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), limit)
	defer cancel()
	run, err := h.chat.Wait(ctx, scope, accepted.Run.ID)
	if err != nil {
		return h.unfinished(c, accepted.Run.ID, err)
	}
	if !run.Status.Ended() { // it waits for a decision
		return answer(c, http.StatusAccepted, acceptedAnswer{Run: run})
	}
	return h.finished(c, run)
}

// finished answers with an ended run and its answer.
func (h *Messages) finished(c *gin.Context, run core.Run) error {
	result := runAnswer{Run: run}
	if run.AnswerID != "" {
		message, err := h.messages.Get(c.Request.Context(), scopeOf(c), run.SessionID, run.AnswerID)
		if err != nil {
			return err
		}
		result.Message = &message
	}
	return answer(c, http.StatusOK, result)
}

// unfinished answers 202 with the run if only the waiting failed: the run is
// accepted, and an error would make the caller send its message again.
func (h *Messages) unfinished(c *gin.Context, id core.RunID, err error) error {
	run, err := stillRunning(c, h.runs, id, err)
	switch {
	case err != nil:
		return err
	case run.Status.Ended():
		return h.finished(c, run)
	default:
		return answer(c, http.StatusAccepted, acceptedAnswer{Run: run})
	}
}

// stillRunning returns the run as it is after err ended the waiting for it, or
// err if that is more than the end of the time that may be waited.
func stillRunning(c *gin.Context, runs runStore, id core.RunID, err error) (core.Run, error) {
	ctx := c.Request.Context()
	harmless := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, core.ErrTimeout) || errors.Is(err, core.ErrUnavailable)
	if !harmless || ctx.Err() != nil {
		return core.Run{}, err
	}
	return runs.Get(ctx, scopeOf(c), id)
}
