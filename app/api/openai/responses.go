package openai

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
)

type responseRequest struct {
	Model              string            `json:"model"`
	Input              input             `json:"input"`
	Instructions       string            `json:"instructions"`
	Conversation       conversationID    `json:"conversation"`
	PreviousResponseID string            `json:"previous_response_id"`
	Store              *bool             `json:"store"`
	Stream             bool              `json:"stream"`
	Background         bool              `json:"background"`
	Tools              []responseTool    `json:"tools"`
	ToolChoice         toolChoice        `json:"tool_choice"`
	ParallelToolCalls  *bool             `json:"parallel_tool_calls"`
	MaxOutputTokens    int               `json:"max_output_tokens"`
	Temperature        *float64          `json:"temperature"`
	TopP               *float64          `json:"top_p"`
	Text               textSettings      `json:"text"`
	Reasoning          reasoningSettings `json:"reasoning"`
	Metadata           map[string]string `json:"metadata"`
	User               string            `json:"user"`
	SafetyIdentifier   string            `json:"safety_identifier"`
}

type conversationID string

// UnmarshalJSON reads an id or an object with one.
func (id *conversationID) UnmarshalJSON(data []byte) error {
	return readTextOr(data, "id", (*string)(id))
}

// responseTool is a tool that the client executes.
type responseTool struct {
	Type string `json:"type"`
	core.ClientTool
}

type textSettings struct {
	Format core.ResponseFormat `json:"format"`
}

type reasoningSettings struct {
	Effort string `json:"effort"`
}

// stored reports whether the response begins a conversation that is kept.
func (r *responseRequest) stored() bool { return r.Store == nil || *r.Store }

// details returns what the request says of its response.
func (r *responseRequest) details() core.ResponseDetails {
	return core.ResponseDetails{Metadata: r.Metadata, PreviousID: r.PreviousResponseID, Background: r.Background, Stored: r.stored()}
}

// toCompletion returns the request as a chat completion with its messages.
func (r *responseRequest) toCompletion(messages []message) completionRequest {
	body := completionRequest{
		Model: r.Model, Messages: messages, Stream: r.Stream, ToolChoice: r.ToolChoice, ParallelToolCalls: r.ParallelToolCalls,
		MaxCompletionTokens: r.MaxOutputTokens, Temperature: r.Temperature, TopP: r.TopP, ReasoningEffort: r.Reasoning.Effort,
		Metadata: r.Metadata, User: r.User, SafetyIdentifier: r.SafetyIdentifier, instructions: r.Instructions, response: new(r.details()),
	}
	for _, t := range r.Tools {
		body.Tools = append(body.Tools, toolDefinition{Type: t.Type, Function: t.ClientTool})
	}
	if f := r.Text.Format; f.Type != "" {
		body.ResponseFormat = &responseFormat{Type: f.Type, JSONSchema: f}
	}
	return body
}

// Respond answers POST /v1/responses.
func (a *API) Respond(c *gin.Context) error {
	body, err := handlers.ReadForeign[responseRequest](c)
	if err != nil {
		return err
	}
	referred, err := a.resolveReferences(c, body.Input)
	if err != nil {
		return err
	}
	messages, err := body.Input.messages("input")
	if err != nil {
		return err
	}
	if err := body.check(); err != nil {
		return err
	}
	fields := fieldNames{
		map[string]string{"content": "input", "messages": "input", "author": "input", "options": "tools", "options.reasoning_effort": "reasoning.effort"},
		strings.NewReplacer("options.response_format", "text.format", "options.", "", "messages[].", "input[].", "messages[", "input[", "results[", "input["),
	}
	r, err := a.newRequest(c, body.toCompletion(messages))
	if err != nil {
		return fields.rename(err)
	}
	if r.session == "" && referred != "" && body.stored() {
		r.session, r.ours = string(referred), true
	}
	return a.Streams.WithSlot(c, func(stream handlers.RunStream) error {
		b, err := a.startResponse(c, r, &body)
		if err != nil {
			return fields.rename(err)
		}
		r.conversation, r.options, r.body, body.Input, body.Tools = conversation{}, nil, completionRequest{}, nil, nil
		beginAnswer(c, b)
		shape := newResponseShape(b, new(body.details()))
		shape.Store = body.stored() || body.Conversation != "" || body.PreviousResponseID != "" || r.session != ""
		switch {
		case body.Stream:
			return a.streamResponse(stream, r.tenant, b, shape, -1)
		case body.Background:
			return writeJSON(c, shape.unfinished(b.run), nil)
		default:
			return a.writeResponse(c, r.tenant, b, shape)
		}
	})
}

// Limits of the metadata of a response, as OpenAI has them: pairs, and characters.
const (
	maxMetadata      = 16
	maxMetadataKey   = 64
	maxMetadataValue = 512
)

// check returns what is wrong with the request as a whole: such as metadata beyond the limits above.
func (r *responseRequest) check() error {
	var f core.Faults
	metadata := r.Metadata
	if r.Background && !r.stored() {
		f.Add("store", "must be true with background: a response that is not stored cannot be read later")
	}
	if r.Conversation != "" && r.PreviousResponseID != "" {
		f.Add("previous_response_id", "cannot be given together with conversation")
	}
	if len(metadata) > maxMetadata {
		f.Add("metadata", "has %d keys, at most %d are allowed", len(metadata), maxMetadata)
	}
	for key, value := range metadata {
		if utf8.RuneCountInString(key) > maxMetadataKey || utf8.RuneCountInString(value) > maxMetadataValue || core.CleanText(key+value) != key+value {
			f.Add("metadata", "%s: a key has at most %d characters, its value %d, both without U+0000", quoteShort(key), maxMetadataKey, maxMetadataValue)
			break
		}
	}
	return f.Err()
}

// startResponse has the input of a response answered.
func (a *API) startResponse(c *gin.Context, r request, body *responseRequest) (activeRun, error) {
	ctx := c.Request.Context()
	switch {
	case body.Conversation == "" && body.PreviousResponseID == "":
		return a.startRun(c, r)
	case r.conversation.next.Role == "":
		b, err := a.resumeRun(handlers.KeyedContext(c), r)
		if b.run.ID == "" || !errors.Is(err, errUnknownCall) {
			return b, err
		}
		r.conversation.next = message{Role: "user", Content: content{text: goOnWithResults}}
		return a.sendNew(c, r, b.run.SessionID, "")
	case r.conversation.continued:
		return activeRun{}, errNoQuestion()
	case body.Conversation != "":
		id, err := parseID[core.SessionID](conversationPrefix, string(body.Conversation), "conversation")
		if err != nil {
			return activeRun{}, err
		}
		return a.sendNew(c, r, id, "")
	default:
		before, _, err := a.findResponse(ctx, r.tenant, body.PreviousResponseID)
		if err != nil {
			return activeRun{}, err
		}
		run := before.run
		of, results, err := r.conversation.callResults()
		if err == nil && len(results) > 0 && of == run.ID && run.Status == core.RunWaiting {
			return a.sendNew(c, r, run.SessionID, "")
		}
		if !run.Status.Ended() {
			return activeRun{}, core.Errorf(core.ErrConflict, "the response %s has not ended: wait for it, or give the results of its tools", quoteShort(body.PreviousResponseID))
		}
		return a.sendNew(c, r, run.SessionID, cmp.Or(run.AnswerID, run.UserMessageID))
	}
}

// sendNew adds the whole input to a session: at the end, or after the message that is given.
func (a *API) sendNew(c *gin.Context, r request, id core.SessionID, after core.MessageID) (activeRun, error) {
	ctx := c.Request.Context()
	session, err := a.findSession(ctx, r.tenant, id)
	if err == nil {
		session, err = a.keepSession(ctx, r.tenant, session)
	}
	if err != nil {
		return activeRun{}, err
	}
	if first, err := a.findFirstRun(ctx, r, session); !errors.Is(err, core.ErrNotFound) {
		return first, err
	}
	at := placement{kind: placeBranch, after: after, missing: r.conversation.history}
	if err := a.placeResults(c, r, session, &at); err != nil {
		return activeRun{}, err
	}
	newest, err := a.Messages.List(ctx, r.tenant, id, core.MessageQuery{Descending: true, PageQuery: core.PageQuery{Limit: 1}}) // on the current path
	if err != nil {
		return activeRun{}, err
	}
	if at.after == "" || len(newest.Items) > 0 && at.after == newest.Items[0].ID {
		at.kind = placeAppend
	}
	return a.sendMessage(ctx, r, session, at)
}

// findResponse returns the run of a response, and its session. ErrNotFound also for a response that
// the request told not to store.
func (a *API) findResponse(ctx context.Context, tenant core.Tenant, id string) (activeRun, core.Session, error) {
	missing := core.Errorf(core.ErrNotFound, "the response %s does not exist", quoteShort(id))
	rest, ok := strings.CutPrefix(id, responsePrefix)
	hexed, number, continued := strings.Cut(rest, "_")
	run, _, isRun := parseCallID(callPrefix + hexed + "_")
	if !ok || !isRun {
		return activeRun{}, core.Session{}, missing
	}
	var found activeRun
	var err error
	if continued {
		found.from.After, err = strconv.ParseInt(number, 10, 64)
		if err != nil || found.from.After <= 0 {
			return found, core.Session{}, missing
		}
	}
	var session core.Session
	if found.run, err = a.Runs.Get(ctx, tenant, run); err == nil {
		session, err = a.findSession(ctx, tenant, found.run.SessionID)
	}
	if errors.Is(err, core.ErrNotFound) || err == nil && session.Temporary && !isStored(found.run) {
		err = missing
	}
	return found, session, err
}

// isStored reports whether the run answers a response that is to be stored.
func isStored(run core.Run) bool {
	details := run.Options.At(0).Response
	return details != nil && details.Stored
}

// readResponse returns the response as it is now. It does not wait for anything.
func (a *API) readResponse(ctx context.Context, tenant core.Tenant, b activeRun, shape *responseShape, session core.Session) (responseShape, error) {
	enc := newResponseEncoder(shape, b.run, -1)
	from := max(b.from.After, b.run.FirstEvent-1)
	if from >= session.LastEventSeq { // nothing has happened yet
		return shape.unfinished(b.run), nil
	}
	for e, err := range a.Chat.Feed.Watch(ctx, tenant, session.ID, core.Cursor{After: from}) {
		if err != nil {
			return responseShape{}, err
		}
		if e.RunID == b.run.ID {
			if _, err := enc.encode(nil, e); err != nil {
				return responseShape{}, err
			}
		}
		switch {
		case enc.ended:
			return *shape, nil
		case e.Type == core.EventResync && b.run.Status.Ended():
			return responseShape{}, core.Errorf(core.ErrNotFound, "the events of the response %s are no longer kept; read the items of its conversation", shape.ID)
		case e.Seq >= session.LastEventSeq:
			return shape.unfinished(b.run), nil
		}
	}
	return shape.unfinished(b.run), context.Cause(ctx)
}

// GetResponse answers GET /v1/responses/{id}: the response as it is now, or with stream=true its
// events after starting_after.
func (a *API) GetResponse(c *gin.Context) error {
	id, _ := core.IdentityFrom(c.Request.Context())
	b, session, err := a.findResponse(c.Request.Context(), id.Tenant(), c.Param("id"))
	if err != nil {
		return err
	}
	shape := newResponseShape(b, nil)
	if c.Query("stream") == "true" {
		after := int64(-1)
		if text := c.Query("starting_after"); text != "" {
			if after, err = strconv.ParseInt(text, 10, 64); err != nil || after < 0 {
				return core.OneFault("starting_after", "must be a sequence_number")
			}
		}
		return a.Streams.WithSlot(c, func(stream handlers.RunStream) error {
			return a.streamResponse(stream, id.Tenant(), b, shape, after)
		})
	}
	current, err := a.readResponse(c.Request.Context(), id.Tenant(), b, shape, session)
	return writeJSON(c, current, err)
}

// CancelResponse answers POST /v1/responses/{id}/cancel.
func (a *API) CancelResponse(c *gin.Context) error {
	id, _ := core.IdentityFrom(c.Request.Context())
	ctx := c.Request.Context()
	b, _, err := a.findResponse(ctx, id.Tenant(), c.Param("id"))
	if err == nil {
		b.run, err = a.Chat.Cancel(ctx, id.Tenant(), b.run.ID)
	}
	if err == nil && !b.run.Status.Ended() {
		_, err = a.Chat.Wait(ctx, id.Tenant(), b.run)
	}
	if err != nil {
		return err
	}
	return a.GetResponse(c)
}

// writeResponse answers with the response when it has ended, or as it is when a request has
// waited long enough.
func (a *API) writeResponse(c *gin.Context, tenant core.Tenant, b activeRun, shape *responseShape) error {
	enc := newResponseEncoder(shape, b.run, -1)
	err := a.awaitAnswer(c, tenant, b, "input", func(e core.Event) bool {
		_, _ = enc.encode(nil, e) // only the shape is wanted
		return enc.ended
	})
	if errors.Is(err, errStillRuns) {
		return writeJSON(c, shape.unfinished(b.run), nil)
	}
	return writeJSON(c, shape, err)
}

func (a *API) streamResponse(stream handlers.RunStream, tenant core.Tenant, b activeRun, shape *responseShape, after int64) error {
	enc := newResponseEncoder(shape, b.run, after)
	return stream(func(ctx context.Context) iter.Seq2[core.Event, error] {
		return untilAnswered(a.Chat.WatchRun(ctx, tenant, b.run, b.from), func() bool { return enc.ended })
	}, enc.encode)
}
