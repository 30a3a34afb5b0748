// Package openai serves the OpenAI API over Bobbin's own use cases: chat completions, models and
// embeddings, for clients that cannot be changed.
//
// A client of this API sends its whole conversation with each request. A request that names a
// session (see sessionName) is compared with the session's log: what the log has already is not
// stored again, a history that continues the log appends to it, and another one becomes a branch.
// A request without a session gets a temporary one.
package openai

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// API answers the requests of OpenAI's clients. Safe for concurrent use.
type API struct {
	handlers.Services
	Streams  *handlers.StreamLimiter
	Models   func() []string // names of the configured models
	Embedder llm.Embedder    // nil = no embeddings
	// EmbeddingModel is the name of the embedding model in the settings, which clients may use as well.
	EmbeddingModel string
	// CountTokens counts the tokens of a text.
	CountTokens func(text string) int
}

// CodeUnknownModel means that no agent has the name of the model.
const CodeUnknownModel = "model_not_found"

// findAgent returns the agent that a model of this API stands for, and the model that answers in
// place of its own: "agent" or "agent/model".
func (a *API) findAgent(name string) (agent core.Agent, model string, err error) {
	if name == "" {
		return agent, "", core.OneFault("model", "is missing; use one of %s", a.someNames())
	}
	agentName, model, overrides := strings.Cut(name, "/")
	agent, err = a.Agents.Get(agentName)
	if err != nil || overrides && !slices.Contains(a.chatModels(), model) {
		return agent, "", &core.Error{Kind: core.ErrNotFound, Code: CodeUnknownModel,
			Message: "the model " + quoteShort(name) + " does not exist; use an agent, or agent/model: " + a.someNames()}
	}
	return agent, model, nil
}

// modelNames returns the models of this API: the agents, and each with the configured models
// that may answer for it.
func (a *API) modelNames() []string {
	var names []string
	list := a.Agents.List()
	for _, agent := range list {
		names = append(names, agent.Name)
	}
	for _, agent := range list {
		for _, model := range a.chatModels() {
			if model != agent.Model {
				names = append(names, agent.Name+"/"+model)
			}
		}
	}
	return names
}

func (a *API) chatModels() []string {
	return slices.DeleteFunc(slices.Clone(a.Models()), func(name string) bool { return name == a.EmbeddingModel })
}

// maxNamed bounds the models that an error names.
const maxNamed = 10

// someNames returns the first models of this API for an error.
func (a *API) someNames() string {
	names := a.modelNames()
	list := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if len(names) > maxNamed {
		list += " …; GET /v1/models lists all"
	}
	return list
}

// quoteShort returns a name of the caller for an error.
func quoteShort(name string) string { return `"` + core.Clip(core.CleanText(name), 100) + `"` }

// request is a chat completion on its way.
type request struct {
	caller
	body         completionRequest
	conversation conversation
	options      *core.RunOptions
	agent        core.Agent
	model        string // in place of the agent's; empty = the agent's
	key          string // Idempotency-Key; empty = none
	hash         string // of the request, if there is a key
}

// newRequest checks a chat completion.
func (a *API) newRequest(c *gin.Context, body completionRequest) (r request, err error) {
	r.body = body
	if err = r.body.check(); err != nil {
		return r, err
	}
	r.body.askInstructions()
	if r.conversation, err = readConversation(r.body.Messages); err != nil {
		return r, err
	}
	if r.options, err = r.body.options(); err != nil {
		return r, err
	}
	if r.agent, r.model, err = a.findAgent(r.body.Model); err != nil {
		return r, err
	}
	if r.key, err = handlers.IdempotencyKey(c.Request); err != nil {
		return r, err
	}
	r.hash = handlers.HashOf(c, r.key)
	r.caller, err = readCaller(c, r.body.Metadata, cmp.Or(r.body.SafetyIdentifier, r.body.User))
	return r, err
}

// Names of headers of answers.
const (
	headerSession = "X-Session-Id"     // the session of Bobbin
	headerHistory = "X-Bobbin-History" // how the client's history was taken: append, branch or side
	headerRetry   = "X-Should-Retry"   // false as soon as there is a run: clients would begin another one
	headerIgnored = "X-Bobbin-Ignored" // what of the request was left out, whole or in part
)

// Complete answers POST /v1/chat/completions.
func (a *API) Complete(c *gin.Context) error {
	body, err := handlers.ReadForeign[completionRequest](c)
	if err != nil {
		return err
	}
	limit := "max_completion_tokens"
	if body.MaxCompletionTokens == 0 {
		limit = "max_tokens"
	}
	fields := fieldNames{
		map[string]string{"content": "messages", "author": "messages", "options": "tools", "options.instructions": "messages", "options.max_output_tokens": limit},
		strings.NewReplacer("options.response_format.type", "response_format.type", "options.response_format.", "response_format.json_schema.",
			"options.", "", "].name", "].function.name", "].parameters", "].function.parameters", "results[", "messages["),
	}
	r, err := a.newRequest(c, body)
	if err != nil {
		return fields.rename(err)
	}
	return a.Streams.WithSlot(c, func(stream handlers.RunStream) error {
		run, err := a.startRun(c, r)
		if err != nil {
			return fields.rename(err)
		}
		if r.body.Logprobs {
			run.ignored = append(run.ignored, "logprobs")
		}
		r.conversation, r.options, r.body.Messages, r.body.Tools = conversation{}, nil, nil, nil
		beginAnswer(c, run)
		return a.serveAnswer(c, r, run, stream)
	})
}

// activeRun is a run that answers a request.
type activeRun struct {
	run     core.Run
	from    core.Cursor // where the events of the answer begin
	ignored []string    // what of the request was left out
}

// beginAnswer sets the headers of an answer, and gives back the memory of the request, of which the
// caller keeps nothing: a stream may last for minutes.
func beginAnswer(c *gin.Context, run activeRun) {
	handlers.HoldOf(c).Release()
	c.Header(headerSession, string(run.run.SessionID))
	c.Header(headerRetry, "false")
	if len(run.ignored) > 0 {
		c.Header(headerIgnored, strings.Join(run.ignored, ", "))
	}
}

// startRun has the new message of the request answered.
func (a *API) startRun(c *gin.Context, r request) (activeRun, error) {
	ctx := c.Request.Context()
	if r.conversation.next.Role == "" {
		run, err := a.resumeRun(handlers.KeyedContext(c), r)
		if !errors.Is(err, errUnknownCall) || !r.conversation.continueCalls() {
			return run, err
		}
	}
	if r.session != "" && (r.conversation.continued || r.conversation.isTaskPrompt()) {
		return a.startSide(c, r)
	}
	session, err := a.openSession(ctx, r)
	if err != nil {
		return activeRun{}, err
	}
	if first, err := a.findFirstRun(ctx, r, session); !errors.Is(err, core.ErrNotFound) {
		return first, err
	}
	if session.ActiveRunID != "" {
		run, err := a.awaitCanceled(ctx, r.caller, session.ActiveRunID)
		if err != nil {
			return activeRun{}, err
		}
		if run.Status.Ended() {
			session.ActiveRunID = ""
		}
	}
	var log logTree
	if session.LastSeq > 0 {
		if log, err = a.loadLog(c, r.caller, session.ID); err != nil {
			return activeRun{}, err
		}
	}
	at := log.placeConversation(r.conversation)
	if at.kind == placeSide {
		return a.startSide(c, r)
	}
	c.Header(headerHistory, string(at.kind))
	b, err := a.sendMessage(ctx, r, session, at)
	if errors.Is(err, core.ErrConflict) && r.session != "" && r.key == "" && r.body.response == nil { // another message is being answered
		return a.startSide(c, r)
	}
	if err == nil && r.session == "" {
		a.cancelReplaced(ctx, r)
	}
	return b, err
}

// startSide has a request answered that leaves the session which it names as it is.
func (a *API) startSide(c *gin.Context, r request) (activeRun, error) {
	r.session, r.ours = "", false
	defer c.Header(headerHistory, string(placeSide))
	return a.startRun(c, r)
}

// findFirstRun returns the run that the request's Idempotency-Key began. ErrNotFound if there is
// none, core.KeyReused if that was another request.
func (a *API) findFirstRun(ctx context.Context, r request, session core.Session) (activeRun, error) {
	known, err := a.Chat.FindRepeated(ctx, r.tenant, core.AcceptRun{SessionID: session.ID, SessionAgent: &core.SessionAgent{Agent: r.agent.Name, Model: session.Model}, Model: r.model, ClientMessageID: r.key, RequestHash: r.hash, Options: r.options})
	return activeRun{run: known.Run, ignored: known.Ignored}, err
}

// sendMessage stores what the log does not have, and the new message, and has it answered.
func (a *API) sendMessage(ctx context.Context, r request, session core.Session, at placement) (activeRun, error) {
	if session.ActiveRunID != "" && session.Status != core.SessionWaiting { // before anything of it is changed
		return activeRun{}, core.Errorf(core.ErrConflict, "session %s is busy with another message", session.ID)
	}
	if session.Agent != r.agent.Name {
		if _, err := a.Chat.UpdateSession(ctx, r.tenant, session.ID, core.SessionPatch{Agent: &r.agent.Name}); err != nil {
			return activeRun{}, err
		}
	}
	parts, err := a.uploadFiles(ctx, r.caller, session.ID, r.conversation.next.Content.files)
	if err != nil {
		return activeRun{}, err
	}
	if repeated := at.findRepeated(parts); repeated != "" {
		accepted, err := a.Chat.Regenerate(ctx, r.tenant, core.Regenerate{
			SessionID: session.ID, MessageID: repeated, User: r.user, ClientMessageID: r.key, RequestHash: r.hash, Model: r.model,
			Multitask: multitaskOf(session, true), Source: core.SourceAPI, Options: r.options,
		})
		return activeRun{run: accepted.Run, ignored: accepted.Ignored}, err
	}
	if len(at.missing) > 0 {
		in := core.AppendMessages{SessionID: session.ID}
		if at.kind == placeBranch {
			in.Branch = &at.after
		}
		var messages []message
		for _, t := range at.missing {
			messages = append(messages, t.messages...)
		}
		if _, err := a.appendMessages(ctx, r.caller, in, messages); err != nil {
			return activeRun{}, err
		}
	}
	switch {
	case len(at.missing) > 0 || at.kind == placeAppend:
		at.after = "" // the end of the current path
	case at.after == "":
		at.after = core.AfterStart
	}
	accepted, err := a.Chat.Send(ctx, r.tenant, core.SendMessage{
		SessionID: session.ID, User: r.user, Content: r.conversation.next.Content.text, ClientMessageID: r.key, RequestHash: r.hash, Model: r.model,
		Multitask: multitaskOf(session, at.after != ""), Source: core.SourceAPI, Author: r.conversation.next.Name, Parts: parts, Options: r.options,
		After: at.after, Results: r.openResults(session, at),
	})
	return activeRun{run: accepted.Run, ignored: accepted.Ignored}, err
}

// findRepeated returns the newest stored message that is the new one, whose parts are given; empty =
// it is another one.
func (p placement) findRepeated(parts []core.Part) core.MessageID {
	sameBlob := func(a, b core.Part) bool { return a.BlobID == b.BlobID }
	for _, m := range slices.Backward(p.repeats) {
		if slices.EqualFunc(m.parts, parts, sameBlob) {
			return m.id
		}
	}
	return ""
}

// multitaskOf returns what the new message does to the session's active run: one that waits for a
// decision or for the client's tools ends (nothing asked for does that), others are in the way.
func multitaskOf(session core.Session, branch bool) core.Multitask {
	switch {
	case session.Status != core.SessionWaiting:
		return core.MultitaskReject
	case branch:
		return core.MultitaskInterrupt
	default:
		return ""
	}
}

func (a *API) uploadFiles(ctx context.Context, who caller, session core.SessionID, files []file) ([]core.Part, error) {
	if _, most := a.Files.MaxBytes(); len(files) > most {
		return nil, core.OneFault("messages[].content"+files[most].field, "at most %d images and files are allowed in a message", most)
	}
	var parts []core.Part
	for _, f := range files {
		field := "messages[].content" + f.field
		if f.id == "" {
			data, name, err := f.decode()
			if err != nil {
				return nil, core.OneFault(field, "%s", err)
			}
			blob, err := a.Files.Upload(ctx, who.tenant, core.Upload{SessionID: session, User: who.user, Name: name, Data: data})
			if err != nil {
				return nil, err
			}
			f.id = blob.ID
		}
		parts = append(parts, core.Part{BlobID: f.id})
	}
	return parts, nil
}
