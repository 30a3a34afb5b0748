package openai

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
)

// serveAnswer answers with the run's answer, as a stream if the request asks for it. If the client
// closes its connection before the end, the run is canceled, unless the client can come back
// for it with its Idempotency-Key.
func (a *API) serveAnswer(c *gin.Context, r request, b activeRun, stream handlers.RunStream) (err error) {
	done := false
	defer func() {
		if !done && r.key == "" {
			_, _ = a.Chat.Cancel(context.WithoutCancel(c.Request.Context()), r.tenant, b.run.ID) // it may have ended
		}
	}()
	created := b.run.CreatedAt.Unix()
	if r.body.Stream {
		enc := newChunkEncoder(b.run, r.body, created)
		// The session's prompts may have half an answer, as far as known: a filter may cut off the next one, too.
		session, _ := a.Sessions.Get(c.Request.Context(), r.tenant, b.run.SessionID)
		turns, _ := a.Messages.Refused(c.Request.Context(), r.tenant, b.run.SessionID)
		enc.answer.holds = slices.ContainsFunc(turns, func(t core.RefusedTurn) bool {
			return t.Role == core.RoleAssistant && t.Seq > session.SummaryThroughSeq
		})
		err = stream(func(ctx context.Context) iter.Seq2[core.Event, error] {
			return untilAnswered(a.Chat.WatchRun(ctx, r.tenant, b.run, b.from), func() bool { return enc.answer.ended })
		}, enc.encode)
		done = enc.answer.ended
		return err
	}
	ans, reasoning := &answer{run: b.run}, strings.Builder{}
	err = a.awaitAnswer(c, r.tenant, b, "messages", func(e core.Event) bool {
		reasoning.WriteString(reasoningOf(e))
		ans.follow(e)
		return ans.ended
	})
	switch done = ans.ended; {
	case errors.Is(err, errStillRuns):
		return core.Errorf(core.ErrTimeout, "the run %s has not ended in %s; read it with GET /api/v1/runs/%s", b.run.ID, a.Streams.Wait, b.run.ID)
	case err != nil:
		return err
	}
	m := answerMessage{Role: "assistant", Reasoning: reasoning.String()}
	for _, call := range ans.waits {
		m.ToolCalls = append(m.ToolCalls, toolCall{ID: callID(b.run.ID, call.ToolCallID), Type: "function", Function: functionCall{Name: call.Tool, Arguments: call.Arguments}})
	}
	texts := slices.DeleteFunc(slices.Clone(ans.texts), func(text string) bool { return text == "" })
	if text := strings.Join(texts, textSeparator); text != "" || len(ans.waits) == 0 {
		m.Content = &text
	}
	return writeJSON(c, completion{
		ID: completionID(b.run.ID), Object: "chat.completion", Created: created, Model: r.body.Model,
		Choices: []choice{{Message: m, FinishReason: ans.finishReason()}}, Usage: usageOf(ans.run.Usage),
	}, nil)
}

// completion is a whole answer as this API writes it.
type completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage"`
}

type choice struct {
	Index        int           `json:"index"`
	Message      answerMessage `json:"message"`
	Logprobs     any           `json:"logprobs"`
	FinishReason string        `json:"finish_reason"`
}

type answerMessage struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"` // nil if there are only tool calls
	Reasoning string     `json:"reasoning_content,omitempty"`
	Refusal   any        `json:"refusal"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

type usage struct {
	PromptTokens      int             `json:"prompt_tokens"`
	CompletionTokens  int             `json:"completion_tokens"`
	TotalTokens       int             `json:"total_tokens"`
	PromptDetails     cachedTokens    `json:"prompt_tokens_details"`
	CompletionDetails reasoningTokens `json:"completion_tokens_details"`
}

type cachedTokens struct {
	CachedTokens int `json:"cached_tokens"`
}

// usageOf returns the tokens of the run's model calls.
func usageOf(u core.Usage) *usage {
	return &usage{
		PromptTokens: u.InputTokens, CompletionTokens: u.OutputTokens, TotalTokens: u.InputTokens + u.OutputTokens,
		PromptDetails: cachedTokens{u.CacheReadTokens}, CompletionDetails: reasoningTokens{u.ReasoningTokens},
	}
}

// completionID returns the id of a completion.
func completionID(run core.RunID) string { return "chatcmpl-" + string(run) }

// writeJSON answers with body, unless there is an error, which it returns.
func writeJSON(c *gin.Context, body any, err error) error {
	if err != nil {
		return err
	}
	raw, err := core.EncodeJSON(body)
	if err != nil {
		return err
	}
	handlers.Write(c, http.StatusOK, "application/json", raw)
	return nil
}

// modelList is the answer of GET /v1/models.
type modelList struct {
	Object string  `json:"object"`
	Data   []model `json:"data"`
}

type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

// modelsSince is when models are said to be created: agents have no such time.
func modelsSince() int64 { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix() }

// ListModels answers GET /v1/models with the agents.
func (a *API) ListModels(c *gin.Context) error {
	list := modelList{Object: "list", Data: []model{}}
	for _, name := range a.modelNames() {
		list.Data = append(list.Data, model{ID: name, Object: "model", Created: modelsSince(), OwnedBy: "bobbin"})
	}
	return writeJSON(c, list, nil)
}

// GetModel answers GET /v1/models/{model}, whose name may have a slash.
func (a *API) GetModel(c *gin.Context) error {
	name := c.Param("model")[1:]
	_, _, err := a.findAgent(name)
	return writeJSON(c, model{ID: name, Object: "model", Created: modelsSince(), OwnedBy: "bobbin"}, err)
}
