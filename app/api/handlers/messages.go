package handlers

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

func (h Native) registerMessages(r Router) {
	r(ops.SendMessage.Operation, h.sendMessage)
	r(ops.EditMessage.Operation, h.editMessage)
	bindRaw(r, ops.RegenerateMessage, func(c *gin.Context, in core.Regenerate) error { // on a new branch
		key, err := IdempotencyKey(c.Request)
		if err != nil {
			return err
		}
		if name := in.Options.Internal(); name != "" {
			return core.OneFault("options", "has the unknown field %q", name)
		}
		in.ClientMessageID = cmp.Or(in.ClientMessageID, key)
		in.RequestHash = HashOf(c, in.ClientMessageID)
		return h.runAndAnswer(c, func() (core.Accepted, error) { return h.Chat.Regenerate(c.Request.Context(), scopeOf(c), in) })
	})
	r(ops.ImportMessages.Operation, h.importMessages)
	bindRaw(r, ops.ListMessages, h.listMessages)
	bind(r, ops.GetMessage, func(ctx context.Context, tenant core.Tenant, in ops.InMessage) (core.Message, error) {
		message, err := h.Messages.Get(ctx, tenant, in.SessionID, in.MessageID) // on any branch
		if err == nil && message.DeletedAt != nil {
			err = core.Errorf(core.ErrNotFound, "message %s was deleted", in.MessageID)
		}
		return message, err
	})
	bindDone(r, ops.DeleteMessage, func(ctx context.Context, tenant core.Tenant, in ops.InMessage) error {
		return h.Chat.DeleteMessage(ctx, tenant, in.SessionID, in.MessageID)
	})
	bind(r, ops.SelectMessage, func(ctx context.Context, tenant core.Tenant, in ops.InMessage) (core.Session, error) {
		return h.Chat.Select(ctx, tenant, in.SessionID, in.MessageID)
	})
	bind(r, ops.PinMessage, func(ctx context.Context, tenant core.Tenant, in ops.Pinned) (core.Message, error) {
		if in.Pinned == nil {
			return core.Message{}, core.OneFault("pinned", "must be true or false")
		}
		return h.Chat.Pin(ctx, tenant, in.SessionID, in.MessageID, *in.Pinned)
	})
	bindDone(r, ops.UnpinMessage, func(ctx context.Context, tenant core.Tenant, in ops.InMessage) error {
		_, err := h.Chat.Pin(ctx, tenant, in.SessionID, in.MessageID, false)
		return err
	})
	bind(r, ops.PutMessageMetadata, func(ctx context.Context, tenant core.Tenant, in ops.MessageMetadata) (core.Message, error) {
		if len(in.Metadata) == 0 {
			return core.Message{}, core.OneFault("metadata", "is missing")
		}
		return h.Chat.UpdateMessage(ctx, tenant, in.SessionID, in.MessageID, core.MessagePatch{Metadata: in.Metadata})
	})
	bind(r, ops.PutFeedback, func(ctx context.Context, tenant core.Tenant, in ops.MessageFeedback) (core.Message, error) {
		if in.Rating == "" {
			return core.Message{}, core.OneFault("rating", "must be up or down")
		}
		return h.Chat.UpdateMessage(ctx, tenant, in.SessionID, in.MessageID, core.MessagePatch{Feedback: &core.Feedback{Rating: in.Rating, Comment: in.Comment}})
	})
	bindDone(r, ops.DeleteFeedback, func(ctx context.Context, tenant core.Tenant, in ops.InMessage) error {
		_, err := h.Chat.UpdateMessage(ctx, tenant, in.SessionID, in.MessageID, core.MessagePatch{Feedback: &core.Feedback{}})
		return err
	})
}

// listMessages answers a page of messages in the order of their seq, or newest first. The field
// pending holds the queued messages: accepted, not in the log yet, with seq 0. The field
// last_event_id says where to start with the session's events, so that nothing is missed
// between the two requests: earlier events are reflected in this answer.
func (h Native) listMessages(c *gin.Context, in ops.MessageList) error {
	session, err := h.Sessions.Get(c.Request.Context(), scopeOf(c), in.SessionID)
	if err != nil {
		return err
	}
	if err := ReserveMemory(c, 2*core.MaxMessagePageBytes+core.MaxPageBytes); err != nil {
		return err
	}
	// Read the session first, then the queue, then the log: a message that moves in between
	// is read twice rather than missed.
	ctx, tenant := c.Request.Context(), scopeOf(c)
	queued, err := h.Runs.Pending(ctx, tenant, session.ID)
	if err != nil {
		return err
	}
	page, err := h.Messages.List(ctx, tenant, session.ID, in.MessageQuery)
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
	return writeJSON(c, http.StatusOK, &ops.MessagePage{Page: page, Pending: pending, LastEventID: session.LastEventSeq})
}

// sendMessage accepts a message and runs the session's agent. It answers with the run's events,
// after the run's end, or immediately, as the headers Accept and Prefer ask for. A
// repeated client_message_id gets the first run. A message with run: false is only
// appended to the log.
func (h Native) sendMessage(c *gin.Context) error {
	var in ops.NewMessage
	if err := h.readNewMessage(c, &in, &in); err != nil {
		return err
	}
	if !wantsRun(in) {
		return h.appendOnly(c, in)
	}
	return h.sendAndAnswer(c, toSendMessage(in))
}

// editMessage adds a new version of a user's message on a new branch and runs the agent. It
// answers like sendMessage. With run: false it changes the text in place, and answers the message.
func (h Native) editMessage(c *gin.Context) error {
	var in ops.EditedMessage
	if err := h.readNewMessage(c, &in, &in.NewMessage); err != nil {
		return err
	}
	if !wantsRun(in.NewMessage) {
		// An idempotency key is not its client_message_id.
		message, err := h.Chat.Revise(KeyedContext(c), scopeOf(c), in.SessionID, in.MessageID, in.Content)
		if err != nil {
			return err
		}
		return writeJSON(c, http.StatusOK, messageAnswer{Message: message})
	}
	message := toSendMessage(in.NewMessage)
	message.Edits = in.MessageID
	return h.sendAndAnswer(c, message)
}

func (h Native) sendAndAnswer(c *gin.Context, m core.SendMessage) error {
	m.RequestHash = HashOf(c, m.ClientMessageID)
	return h.runAndAnswer(c, func() (core.Accepted, error) { return h.Chat.Send(c.Request.Context(), scopeOf(c), m) })
}

// runAndAnswer starts a run and answers about it as the headers Accept and Prefer ask for: with its events,
// immediately, or when it has ended or waits for an approval, or after the time limit with the current
// run. The header Location names the run in any case. A request that streams its run or waits for it gets
// its slot before anything is changed.
func (h Native) runAndAnswer(c *gin.Context, start func() (core.Accepted, error)) (err error) {
	ctx, tenant, limit := c.Request.Context(), scopeOf(c), h.Streams.Wait
	async, wait := readPreference(c.Request.Header)
	streams := Accepts(c.Request.Header, "Accept", "text/event-stream")
	var held *slot
	if !async || wait > 0 || streams {
		if held, err = h.Streams.acquireSlot(ctx); err != nil {
			return err
		}
		defer held.Release()
	}
	accepted, err := start()
	if err != nil {
		return err
	}
	run := accepted.Run
	c.Header("Location", ops.CancelRun.Location+string(run.ID))
	switch {
	case held == nil:
		c.Header("Preference-Applied", "respond-async")
		return writeJSON(c, http.StatusAccepted, ops.RunAnswer{Run: run})
	case streams:
		return h.Streams.serveEvents(c, held, h.Streams.Stream, func(ctx context.Context) iter.Seq2[core.Event, error] {
			return h.Chat.WatchRun(ctx, tenant, run, core.Cursor{})
		})
	case wait > 0:
		limit = min(limit, wait)
	}
	HoldOf(c).Release()
	out, err := h.Chat.WaitFor(ctx, tenant, run, limit)
	held.Release()
	if err != nil {
		return err
	}
	if !out.Run.Status.Ended() {
		return writeJSON(c, http.StatusAccepted, ops.RunAnswer{Run: out.Run})
	}
	if id := out.Run.AnswerID; id != "" && out.Answer == nil {
		message, err := h.Messages.Get(ctx, tenant, run.SessionID, id)
		if err != nil {
			return err
		}
		out.Answer = &message
	}
	return writeJSON(c, http.StatusOK, ops.RunAnswer{Run: out.Run, Message: out.Answer})
}

func toSendMessage(body ops.NewMessage) core.SendMessage {
	return core.SendMessage{
		SessionID: body.SessionID, User: body.UserID, After: body.After, Content: body.Content, ClientMessageID: body.ClientMessageID, Model: body.Model,
		Multitask: body.Multitask, Source: cmp.Or(body.Source, core.SourceAPI), Author: body.Author, Metadata: body.Metadata,
		Parts: partsOf(body.Parts), Webhook: body.Webhook.ToCore(), Options: body.Options,
	}
}
