package anthropic

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// minThinking is the smallest budget that the API takes, and what is kept for the
// answer beside any.
const minThinking = 1_024

// requestBody returns the body of the request. It depends on the request alone, message by message,
// so that the same messages give the same bytes.
func (m *Model) requestBody(req llm.Request) ([]byte, error) {
	given, turns := req.SplitCompaction()
	if len(req.Tools) == 0 {
		turns = llm.ToolTurnsAsText(turns)
	}
	if given == nil {
		turns = llm.UserFirst(turns)
	}
	b := &builder{model: m}
	if err := b.addAll(turns); err != nil {
		return nil, err
	}
	if given != nil {
		// The API's own answer, as it came, which stays apart from an answer that follows it.
		members := opaque{}
		if !strings.HasPrefix(given.Signature, "{") || json.Unmarshal([]byte(given.Signature), &members) != nil {
			members = opaque{Signature: given.Signature} // the API is to refuse it if it is none
		}
		b.messages = slices.Insert(b.messages, 0, message{"assistant", []block{{Type: "compaction", opaque: members, Content: given.Text}}})
		if b.lasting[0] > 0 {
			b.lasting[0]++
		}
	}
	var system []block
	for _, text := range req.System {
		if !isBlank(text) {
			system = append(system, block{Type: "text", Text: text})
		}
	}
	r := request{
		MaxTokens: cmp.Or(max(req.MaxOutputTokens, 0), max(m.options.Info.MaxOutput, 0), defaultMaxOutput), Messages: b.messages,
		System: system, Tools: toolList(req.Tools), Stream: true, Version: m.cloud.Version,
	}
	if req.Compact {
		r.Compaction = &typed{Type: "summarize"}
	}
	if m.cloud.Path == "" { // else the path names it
		r.Model = m.options.Model
	}
	if r.Thinking = m.thinkingConfig(req, turns, r.MaxTokens); r.Thinking != nil && m.bindsThoughts(req) {
		r.Thinking.Binding = &blockBinding{"drop_block"} // without thinking the API refuses it, and Stream sends it without thoughts
	}
	if !m.fixedSampling { // a summary or a title asks every model for a temperature
		r.Temperature = req.Temperature
	}
	r.TopP, r.StopSequences = req.TopP, req.Stop
	if f := req.ResponseFormat; f != nil && f.Type == core.FormatJSONSchema {
		r.OutputConfig = &outputConfig{outputFormat{string(f.Type), f.Schema}}
	}
	if len(r.Tools) > 0 {
		r.ToolChoice = toToolChoice(req)
	}
	setCacheBreakpoints(&r, b.lasting)
	return r.encode()
}

// thinkingConfig returns how the model is to think; nil = its default,
// which up to Claude 4.5 is not at all.
func (m *Model) thinkingConfig(req llm.Request, turns []llm.Message, maxTokens int) *thinking {
	always := req.ChecksPrefix && m.decidesThinking && m.countThoughts(req) > 0                  // it thinks without being asked
	if req.Temperature != nil || req.ToolChoice.Forced() || m.options.Thinking == 0 && !always { // the API refuses the first two beside it
		return nil
	}
	if m.decidesThinking {
		return &thinking{Type: "adaptive", Display: "summarized"}
	}
	budget := min(m.options.Thinking, maxTokens-minThinking)
	if budget < minThinking || m.endsWithUnthinkingCalls(turns) {
		return nil
	}
	return &thinking{Type: "enabled", BudgetTokens: budget}
}

// bindsThoughts reports whether the API is asked to leave out thoughts behind another prompt than that
// of their making, instead of refusing the request, and to report them.
func (m *Model) bindsThoughts(req llm.Request) bool {
	return req.ChecksPrefix && (m.cloud.Provider == "" || m.cloud.BindingControls)
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

// thinkingBlocks returns the blocks of thinking that go back with a message.
func (m *Model) thinkingBlocks(turn llm.Message) []core.Part {
	var out []core.Part
	for _, p := range turn.Parts {
		if p.Type == core.PartReasoning && p.Signature != "" && p.Origin == m.options.Info.ThoughtOrigin {
			out = append(out, p)
		}
	}
	return out
}

// countThoughts returns how many go back with the request.
func (m *Model) countThoughts(req llm.Request) (n int) {
	for _, turn := range req.Messages {
		n += len(m.thinkingBlocks(turn))
	}
	return n
}

func toolList(specs []llm.ToolSpec) (out []tool) {
	for _, t := range specs {
		out = append(out, tool{Name: t.Name, Description: t.Description, InputSchema: t.Schema(), Strict: t.Strict})
	}
	return out
}

// toToolChoice returns the choice as the API writes it; nil = the model decides.
func toToolChoice(req llm.Request) *toolChoice {
	single := req.ParallelToolCalls != nil && !*req.ParallelToolCalls
	switch name := req.ToolChoice.Tool(); {
	case req.ToolChoice == core.ToolChoiceNone:
		return &toolChoice{Type: "none"}
	case req.ToolChoice == core.ToolChoiceRequired:
		return &toolChoice{Type: "any", Single: single}
	case name != "":
		return &toolChoice{Type: "tool", Name: name, Single: single}
	case single:
		return &toolChoice{Type: "auto", Single: true}
	}
	return nil
}

// cachedBlocks is how many of the system blocks are breakpoints: the system prompt
// and the summary.
const cachedBlocks = 2

// setCacheBreakpoints marks up to where the prompt is kept in the provider's cache. Lasting
// tells the last block that the next prompt repeats (builder); it takes the place of the
// tools', which the system prompt's covers.
func setCacheBreakpoints(r *request, lasting [2]int) {
	mark := &typed{"ephemeral"}
	if n := len(r.Tools); n > 0 && (lasting[0] == 0 || len(r.System) == 0) {
		r.Tools[n-1].CacheControl = mark
	}
	for i := range r.System[:min(len(r.System), cachedBlocks)] {
		r.System[i].CacheControl = mark
	}
	if len(r.Messages) < 2 {
		return
	}
	if lasting[0] > 0 {
		r.Messages[lasting[0]-1].content[lasting[1]-1].mark(mark)
	}
	for _, m := range slices.Backward(r.Messages) {
		for i := range slices.Backward(m.content) {
			if m.content[i].mark(mark) {
				return
			}
		}
	}
}

// mark makes the block a breakpoint; false = it is of a type that takes none.
func (b *block) mark(control *typed) bool {
	isTaken := b.Text != "" || b.Source != nil || b.id != "" || b.ToolUseID != ""
	if isTaken {
		b.CacheControl = control
	}
	return isTaken
}
