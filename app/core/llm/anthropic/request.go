package anthropic

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// minThinking is the smallest budget that the API takes, and what is kept for the
// answer beside any.
const minThinking = 1_024

// params returns the request in the SDK's types, and the arguments that go into
// its body. It is a function of the request alone, message by message, so that the
// same messages give the same bytes (CONTEXT § 3, invariant 7).
func (m *Model) params(req llm.Request) (sdk.MessageNewParams, rawArguments, error) {
	turns := req.Messages
	if len(req.Tools) == 0 {
		turns = llm.ToolTurnsAsText(turns)
	}
	b := &builder{model: m}
	if err := b.addAll(turns); err != nil {
		return sdk.MessageNewParams{}, nil, err
	}
	p := sdk.MessageNewParams{
		Model: m.options.Model, MaxTokens: int64(m.maxTokens(req)), Messages: b.messages,
		System: systemBlocks(req.System), Tools: toolParams(req.Tools),
	}
	p.Thinking = m.thinking(req, turns, int(p.MaxTokens))
	if t := req.Temperature; t != nil && !m.claude.fixedSampling() {
		p.Temperature = param.NewOpt(*t)
	}
	if req.ToolChoice == llm.ToolChoiceNone && len(p.Tools) > 0 {
		p.ToolChoice = sdk.ToolChoiceUnionParam{OfNone: &sdk.ToolChoiceNoneParam{}}
	}
	breakpoints(&p)
	return p, b.raw, nil
}

// maxTokens returns the output limit, which the API wants to be told.
func (m *Model) maxTokens(req llm.Request) int {
	for _, n := range []int{req.MaxOutputTokens, m.options.Info.MaxOutput} {
		if n > 0 {
			return n
		}
	}
	return DefaultMaxOutput
}

// thinking returns how the model is to think; nothing = as it does by itself,
// which up to Claude 4.5 is not at all.
func (m *Model) thinking(req llm.Request, turns []llm.Message, maxTokens int) sdk.ThinkingConfigParamUnion {
	var out sdk.ThinkingConfigParamUnion
	if m.options.Thinking == 0 || req.Temperature != nil {
		return out
	}
	if m.claude.decidesThinking() {
		out.OfAdaptive = &sdk.ThinkingConfigAdaptiveParam{Display: sdk.ThinkingConfigAdaptiveDisplaySummarized}
		return out
	}
	budget := min(m.options.Thinking, maxTokens-minThinking)
	if budget < minThinking || m.thoughtless(turns) {
		return out
	}
	return sdk.ThinkingConfigParamOfEnabled(int64(budget))
}

// thoughtless reports whether the last answer is tool calls that came without
// thinking of this model. The API refuses to think on from there.
func (m *Model) thoughtless(turns []llm.Message) bool {
	for _, turn := range slices.Backward(turns) {
		if turn.Role == core.RoleAssistant {
			return len(turn.ToolCalls) > 0 && len(m.thoughts(turn)) == 0
		}
	}
	return false
}

// origin is whose signatures this model takes back.
func (m *Model) origin() string { return Provider + "/" + m.options.Model }

// thoughts returns the blocks of thinking that go back with a message.
func (m *Model) thoughts(turn llm.Message) []core.Part {
	if len(turn.ToolCalls) == 0 {
		return nil
	}
	var out []core.Part
	for _, p := range turn.Parts {
		if p.Type == "reasoning" && p.Signature != "" && p.Origin == m.origin() {
			out = append(out, p)
		}
	}
	return out
}

// refusedThoughts reports whether the request was refused for the thoughts in it.
// Such a conversation could never go on.
func (m *Model) refusedThoughts(req llm.Request, err error) bool {
	e := llm.AsError(err)
	if e == nil || e.Kind != llm.KindInvalid || e.Status != http.StatusBadRequest || !strings.Contains(e.Message, "thinking") {
		return false
	}
	return slices.ContainsFunc(req.Messages, func(turn llm.Message) bool { return len(m.thoughts(turn)) > 0 })
}

// withoutThoughts returns the request without any.
func withoutThoughts(req llm.Request) llm.Request {
	req.Messages = slices.Clone(req.Messages)
	for i, turn := range req.Messages {
		req.Messages[i].Parts = slices.DeleteFunc(slices.Clone(turn.Parts), func(p core.Part) bool { return p.Type == "reasoning" })
	}
	return req
}

func systemBlocks(texts []string) []sdk.TextBlockParam {
	var out []sdk.TextBlockParam
	for _, text := range texts {
		if !blank(text) {
			out = append(out, sdk.TextBlockParam{Text: text})
		}
	}
	return out
}

func toolParams(tools []llm.ToolSpec) []sdk.ToolUnionParam {
	var out []sdk.ToolUnionParam
	for _, t := range tools {
		schema := t.Parameters
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		tool := &sdk.ToolParam{Name: t.Name, InputSchema: param.Override[sdk.ToolInputSchemaParam](schema)}
		if t.Description != "" {
			tool.Description = param.NewOpt(t.Description)
		}
		out = append(out, sdk.ToolUnionParam{OfTool: tool})
	}
	return out
}

// cachedBlocks is how many of the system blocks are breakpoints: the system prompt
// and the summary.
const cachedBlocks = 2

// breakpoints marks up to where the prompt is kept in the provider's cache.
func breakpoints(p *sdk.MessageNewParams) {
	mark := sdk.NewCacheControlEphemeralParam()
	if n := len(p.Tools); n > 0 {
		p.Tools[n-1].OfTool.CacheControl = mark
	}
	for i := range p.System[:min(len(p.System), cachedBlocks)] {
		p.System[i].CacheControl = mark
	}
	if len(p.Messages) < 2 {
		return
	}
	last := p.Messages[len(p.Messages)-1].Content
	if control := last[len(last)-1].GetCacheControl(); control != nil {
		*control = mark
	}
}
