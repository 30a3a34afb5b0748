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

// betaMembers are members of a request that the SDK's stable API does not have.
type betaMembers struct {
	Stream     bool                              `json:"stream"`
	Compaction *sdk.BetaSummarizeCompactionParam `json:"compaction,omitempty"`
	Version    string                            `json:"anthropic_version,omitempty"` // of a cloud
}

// requestBody returns the body of the request. It depends on the request alone, message by message,
// so that the same messages give the same bytes.
func (m *Model) requestBody(req llm.Request) ([]byte, error) {
	p, err := m.toParams(req)
	if err != nil {
		return nil, err
	}
	body, err := p.MarshalJSON() // json.Marshal would rewrite the arguments of calls
	if err != nil {
		return nil, err
	}
	beta, err := json.Marshal(betaMembers{Stream: true, Compaction: compactionOrder(req), Version: m.cloud.Version})
	if err != nil {
		return nil, err
	}
	return slices.Concat(body[:len(body)-1], []byte(","), beta[1:]), nil
}

// betas returns the betas that the request needs.
func (m *Model) betas(req llm.Request) []string {
	var out []string
	add := func(isNeeded bool, beta string) {
		if isNeeded {
			out = append(out, beta)
		}
	}
	given, turns := req.SplitCompaction()
	add(m.bindsThoughts(req), sdk.AnthropicBetaThinkingBindingControls2026_08_01)
	add(given != nil || req.Compact, sdk.AnthropicBetaCompact2026_09_04)
	add(slices.ContainsFunc(turns, func(turn llm.Message) bool { return len(turn.AddedTools) > 0 }), sdk.AnthropicBetaInlineTools2026_09_15)
	add(slices.ContainsFunc(turns, func(turn llm.Message) bool { return len(turn.RemovedTools) > 0 }), sdk.AnthropicBetaMidConversationToolChanges2026_07_01)
	return out
}

// toParams returns the request in the SDK's types.
func (m *Model) toParams(req llm.Request) (sdk.MessageNewParams, error) {
	given, turns := req.SplitCompaction()
	if len(req.Tools) == 0 {
		turns = llm.ToolTurnsAsText(turns)
	}
	if given == nil {
		turns = llm.UserFirst(turns)
	}
	b := &builder{model: m}
	if err := b.addAll(turns); err != nil {
		return sdk.MessageNewParams{}, err
	}
	if given != nil {
		if err := b.putFirst(*given); err != nil {
			return sdk.MessageNewParams{}, err
		}
	}
	p := sdk.MessageNewParams{
		MaxTokens: int64(m.maxTokens(req)), Messages: b.messages,
		System: systemBlocks(req.System), Tools: toolParams(req.Tools),
	}
	if m.cloud.Path == "" { // else the path names it
		p.Model = m.options.Model
	}
	p.Thinking = m.thinkingConfig(req, turns, int(p.MaxTokens))
	if m.bindsThoughts(req) {
		dropMismatches(p.Thinking)
	}
	m.setParameters(&p, req)
	if len(p.Tools) > 0 {
		p.ToolChoice = toToolChoice(req)
	}
	setCacheBreakpoints(&p, b.lasting)
	return p, nil
}

// maxTokens returns the output limit, which the API requires.
func (m *Model) maxTokens(req llm.Request) int {
	for _, n := range []int{req.MaxOutputTokens, m.options.Info.MaxOutput} {
		if n > 0 {
			return n
		}
	}
	return DefaultMaxOutput
}

// thinkingConfig returns how the model is to think; zero = its default,
// which up to Claude 4.5 is not at all.
func (m *Model) thinkingConfig(req llm.Request, turns []llm.Message, maxTokens int) sdk.ThinkingConfigParamUnion {
	var out sdk.ThinkingConfigParamUnion
	if req.Temperature != nil || req.ToolChoice.Forced() { // the API refuses both together
		return out
	}
	always := req.ChecksPrefix && m.claude.decidesThinking() && m.hasThoughts(req) // it thinks without being asked
	if m.options.Thinking == 0 && !always {
		return out
	}
	if m.claude.decidesThinking() {
		out.OfAdaptive = &sdk.ThinkingConfigAdaptiveParam{Display: sdk.ThinkingConfigAdaptiveDisplaySummarized}
		return out
	}
	budget := min(m.options.Thinking, maxTokens-minThinking)
	if budget < minThinking || m.endsWithUnthinkingCalls(turns) {
		return out
	}
	return sdk.ThinkingConfigParamOfEnabled(int64(budget))
}

// endsWithUnthinkingCalls reports whether the last answer is tool calls that came without
// thinking of this model. The API refuses to think on from there.
func (m *Model) endsWithUnthinkingCalls(turns []llm.Message) bool {
	for _, turn := range slices.Backward(turns) {
		if turn.Role == core.RoleAssistant {
			return len(turn.ToolCalls) > 0 && len(m.thinkingBlocks(turn)) == 0
		}
	}
	return false
}

// signatureOrigin is whose signatures this model takes back.
func (m *Model) signatureOrigin() string { return m.options.Info.ThoughtOrigin }

// thinkingBlocks returns the blocks of thinking that go back with a message.
func (m *Model) thinkingBlocks(turn llm.Message) []core.Part {
	var out []core.Part
	for _, p := range turn.Parts {
		if p.Type == core.PartReasoning && p.Signature != "" && p.Origin == m.signatureOrigin() {
			out = append(out, p)
		}
	}
	return out
}

// hasThoughts reports whether any goes back with the request.
func (m *Model) hasThoughts(req llm.Request) bool {
	return slices.ContainsFunc(req.Messages, func(turn llm.Message) bool { return len(m.thinkingBlocks(turn)) > 0 })
}

// refusedThoughts reports whether the request was refused for the thoughts in it.
// Such a conversation could never go on.
func (m *Model) refusedThoughts(req llm.Request, e *llm.Error) bool {
	if e == nil || e.Kind != llm.KindInvalid || e.Status != http.StatusBadRequest || !strings.Contains(e.Message, "thinking") {
		return false
	}
	return m.hasThoughts(req)
}

func systemBlocks(texts []string) []sdk.TextBlockParam {
	var out []sdk.TextBlockParam
	for _, text := range texts {
		if !isBlank(text) {
			out = append(out, sdk.TextBlockParam{Text: text})
		}
	}
	return out
}

func toolParams(tools []llm.ToolSpec) []sdk.ToolUnionParam {
	var out []sdk.ToolUnionParam
	for _, t := range tools {
		tool := &sdk.ToolParam{Name: t.Name, InputSchema: param.Override[sdk.ToolInputSchemaParam](t.Schema())}
		if t.Description != "" {
			tool.Description = param.NewOpt(t.Description)
		}
		if t.Strict != nil {
			tool.Strict = param.NewOpt(*t.Strict)
		}
		out = append(out, sdk.ToolUnionParam{OfTool: tool})
	}
	return out
}

// toToolChoice returns the choice as the API writes it; zero = the model decides.
func toToolChoice(req llm.Request) (out sdk.ToolChoiceUnionParam) {
	var single param.Opt[bool]
	if p := req.ParallelToolCalls; p != nil && !*p {
		single = param.NewOpt(true)
	}
	switch tool := req.ToolChoice.Tool(); {
	case req.ToolChoice == core.ToolChoiceNone:
		out.OfNone = &sdk.ToolChoiceNoneParam{}
	case req.ToolChoice == core.ToolChoiceRequired:
		out.OfAny = &sdk.ToolChoiceAnyParam{DisableParallelToolUse: single}
	case tool != "":
		out.OfTool = &sdk.ToolChoiceToolParam{Name: tool, DisableParallelToolUse: single}
	case single.Valid():
		out.OfAuto = &sdk.ToolChoiceAutoParam{DisableParallelToolUse: single}
	}
	return out
}

// cachedBlocks is how many of the system blocks are breakpoints: the system prompt
// and the summary.
const cachedBlocks = 2

// setCacheBreakpoints marks up to where the prompt is kept in the provider's cache. Lasting
// tells the last block that the next prompt repeats (builder); it takes the place of the
// tools', which the system prompt's covers.
func setCacheBreakpoints(p *sdk.MessageNewParams, lasting [2]int) {
	mark := sdk.NewCacheControlEphemeralParam()
	if n := len(p.Tools); n > 0 && (lasting[0] == 0 || len(p.System) == 0) {
		p.Tools[n-1].OfTool.CacheControl = mark
	}
	for i := range p.System[:min(len(p.System), cachedBlocks)] {
		p.System[i].CacheControl = mark
	}
	if len(p.Messages) < 2 {
		return
	}
	ends := []*sdk.ContentBlockParamUnion{lastMarkable(p.Messages)}
	if lasting[0] > 0 {
		ends = append(ends, &p.Messages[lasting[0]-1].Content[lasting[1]-1])
	}
	for _, block := range ends {
		if control := block.GetCacheControl(); control != nil {
			*control = mark
		}
	}
}

// lastMarkable returns the last block that the SDK can mark: none that changes the tools.
func lastMarkable(messages []sdk.MessageParam) *sdk.ContentBlockParamUnion {
	for _, m := range slices.Backward(messages) {
		for i := range slices.Backward(m.Content) {
			block := &m.Content[i]
			if block.OfText == nil {
				return block
			}
			if _, isRaw := block.OfText.Overrides(); !isRaw {
				return block
			}
		}
	}
	return &sdk.ContentBlockParamUnion{}
}
