package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
)

// answer reads one answer and hands it on piece by piece.
type answer struct {
	providerhttp.Answer

	origin string // of the signatures in it

	blocks map[int64]*block
	calls  int // so far
	usage  tally
	model  string // that answered, as reported
	stop   sdk.StopReason
	ended  bool // message_stop came
}

// block is a content block on its way.
type block struct {
	kind       string
	call       int    // of a tool call: its place among the calls
	input      []byte // of a tool call: what came with its start
	streamed   bool   // of a tool call: arguments came after its start
	thinking   []byte
	signature  string
	compaction compactionBlock
}

// read reads the answer to its end, streamed or not.
func (a *answer) read(body io.Reader) error {
	a.blocks = map[int64]*block{}
	err := providerhttp.Reader{Whole: a.readWhole, Stream: a.readStream, Page: func() error {
		return a.Refusal([]byte(providerhttp.WebPage))
	}}.Read(body)
	if err != nil {
		return err
	}
	last := llm.Delta{Usage: a.usage.toUsage(), Finish: finishReason(a.stop, a.calls > 0), Model: a.model}
	if a.Compaction != nil {
		return a.endCompaction(last)
	}
	return a.EmitDelta(last)
}

// readStream reads server-sent events up to message_stop, without which the answer was
// cut off.
func (a *answer) readStream(events *providerhttp.Events) error {
	for !a.ended {
		e, err := events.Next()
		if errors.Is(err, io.EOF) {
			return providerhttp.ErrTruncated
		}
		if err != nil {
			return err
		}
		if e.Name == "error" {
			return a.Refusal(e.Data)
		}
		if err := a.handleEvent(e.Data); err != nil {
			return err
		}
	}
	if a.stop == "" {
		return providerhttp.ErrTruncated
	}
	return nil
}

// handleEvent handles one event. Other data is a keep-alive.
func (a *answer) handleEvent(data []byte) error {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || data[0] != '{' {
		return nil
	}
	var e sdk.MessageStreamEventUnion
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("%w in the middle of an event", providerhttp.ErrTruncated)
	}
	switch e.Type {
	case "error":
		return a.Refusal(data)
	case "message_start":
		if err := a.EmitDelta(llm.Delta{Dropped: providerhttp.ReadDropped([]byte(e.Message.RawJSON()))}); err != nil {
			return err
		}
		a.model = string(e.Message.Model)
		a.usage.addUsage(sdk.MessageDeltaUsage{
			InputTokens: e.Message.Usage.InputTokens, OutputTokens: e.Message.Usage.OutputTokens,
			CacheReadInputTokens: e.Message.Usage.CacheReadInputTokens, CacheCreationInputTokens: e.Message.Usage.CacheCreationInputTokens,
		})
		a.usage.addIterations(e.Message.Usage.RawJSON())
	case "content_block_start":
		return a.openBlock(e)
	case "content_block_delta":
		return a.continueBlock(e)
	case "content_block_stop":
		return a.closeBlock(e.Index)
	case "message_delta":
		if err := a.EmitDelta(llm.Delta{Dropped: providerhttp.ReadDropped(data)}); err != nil {
			return err
		}
		a.usage.addUsage(e.Usage)
		a.usage.addIterations(e.Usage.RawJSON())
		if e.Delta.StopReason != "" {
			a.stop = e.Delta.StopReason
		}
	case "message_stop":
		a.ended = true
	}
	return nil
}

// openBlock begins a block.
func (a *answer) openBlock(e sdk.MessageStreamEventUnion) error {
	start := e.ContentBlock
	b := &block{kind: start.Type, thinking: []byte(start.Thinking), signature: start.Signature}
	a.blocks[e.Index] = b
	switch start.Type {
	case "text":
		return a.EmitDelta(llm.Delta{Text: start.Text})
	case "thinking":
		return a.EmitDelta(llm.Delta{Reasoning: start.Thinking})
	case "redacted_thinking":
		b.signature = start.Data
	case core.PartCompaction:
		b.signature = ""
		b.readCompaction(start.RawJSON())
	case "tool_use":
		b.call, b.input = a.calls, []byte(start.JSON.Input.Raw())
		a.calls++
		return a.EmitDelta(llm.Delta{ToolCall: &llm.ToolCallDelta{Index: b.call, ID: a.UniqueCallID(start.ID), Name: start.Name}})
	}
	return nil
}

// continueBlock adds a piece to a block. A block whose beginning did not come has the kind
// of its piece.
func (a *answer) continueBlock(e sdk.MessageStreamEventUnion) error {
	b := a.blocks[e.Index]
	if b == nil {
		b = &block{}
		a.blocks[e.Index] = b
	}
	switch d := e.Delta; d.Type {
	case "text_delta":
		return a.EmitDelta(llm.Delta{Text: d.Text})
	case "thinking_delta":
		b.thinking = append(b.thinking, d.Thinking...)
		return a.EmitDelta(llm.Delta{Reasoning: d.Thinking})
	case "signature_delta":
		b.signature += d.Signature
	case "compaction_delta":
		b.readCompactionDelta(e.RawJSON())
	case "input_json_delta":
		if b.kind != "tool_use" || d.PartialJSON == "" {
			return nil
		}
		b.streamed = true
		return a.EmitDelta(llm.Delta{ToolCall: &llm.ToolCallDelta{Index: b.call, Arguments: d.PartialJSON}})
	}
	return nil
}

// closeBlock ends a block. Its thoughts go into the log as one part.
func (a *answer) closeBlock(index int64) error {
	b := a.blocks[index]
	if b == nil {
		return nil
	}
	delete(a.blocks, index)
	switch b.kind {
	case "tool_use":
		if b.streamed || len(b.input) == 0 || string(b.input) == "{}" || string(b.input) == "null" {
			return nil
		}
		return a.EmitDelta(llm.Delta{ToolCall: &llm.ToolCallDelta{Index: b.call, Arguments: string(b.input)}})
	case "thinking":
		return a.emitThinking(core.Part{Text: string(b.thinking), Signature: b.signature})
	case "redacted_thinking":
		return a.emitThinking(core.Part{Name: redacted, Signature: b.signature})
	case core.PartCompaction:
		if b.signature != "" {
			b.compaction.Signature = b.signature
		}
		a.Compaction.Add(b.compaction.toPart(a.origin))
	}
	return nil
}

// emitThinking yields a block of thinking.
func (a *answer) emitThinking(p core.Part) error {
	if p.Text == "" && p.Signature == "" {
		return nil
	}
	p.Type = "reasoning"
	if p.Signature != "" {
		p.Origin = a.origin
	}
	return a.EmitDelta(llm.Delta{Part: &p})
}

// readWhole takes the answer of a server that did not stream, as the events that it
// would have been.
func (a *answer) readWhole(text []byte) error {
	var message struct {
		Type  string          `json:"type"`
		Model string          `json:"model"`
		Stop  sdk.StopReason  `json:"stop_reason"`
		Usage json.RawMessage `json:"usage"`
	}
	if err := json.Unmarshal(text, &message); err != nil || message.Type != "message" {
		return a.Refusal(text)
	}
	if err := a.EmitDelta(llm.Delta{Dropped: providerhttp.ReadDropped(text)}); err != nil {
		return err
	}
	a.stop, a.model = message.Stop, message.Model
	if len(message.Usage) > 0 {
		if err := a.handleEvent([]byte(`{"type":"message_delta","delta":{},"usage":` + string(message.Usage) + `}`)); err != nil {
			return err
		}
	}
	if err := a.readBlocks(text); err != nil {
		return err
	}
	if a.stop == "" {
		return providerhttp.ErrTruncated
	}
	return nil
}

// readBlocks reads the blocks of a whole answer.
func (a *answer) readBlocks(text []byte) error {
	var message struct {
		Content []json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(text, &message); err != nil {
		return a.Refusal(text)
	}
	for i, raw := range message.Content {
		start := fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, raw)
		if err := a.handleEvent([]byte(start)); err != nil {
			return err
		}
		if err := a.closeBlock(int64(i)); err != nil {
			return err
		}
	}
	return nil
}

// tally is the usage so far: what comes later counts for what came before, and
// what is left out leaves it.
type tally struct {
	input, read, write, output, reasoning int64

	passes *tally // all of them together, where the answer lists them; nil = it does not
}

func (t *tally) addUsage(u sdk.MessageDeltaUsage) {
	t.input, t.output = max(t.input, u.InputTokens), max(t.output, u.OutputTokens)
	t.read, t.write = max(t.read, u.CacheReadInputTokens), max(t.write, u.CacheCreationInputTokens)
	t.reasoning = max(t.reasoning, u.OutputTokensDetails.ThinkingTokens)
}

// addIterations adds up the passes that an answer took. All of them are billed, but the usage
// beside the list has the last one only, and nothing of a compaction.
func (t *tally) addIterations(usage string) {
	var list struct {
		Iterations []sdk.BetaIterationsUsageItemUnion `json:"iterations"`
	}
	if json.Unmarshal([]byte(usage), &list) != nil || len(list.Iterations) == 0 { // the usage has no more to say
		return
	}
	t.passes = &tally{}
	for _, u := range list.Iterations {
		t.passes.input += max(u.InputTokens, 0)
		t.passes.output += max(u.OutputTokens, 0)
		t.passes.read += max(u.CacheReadInputTokens, 0)
		t.passes.write += max(u.CacheCreationInputTokens, 0)
	}
}

// toUsage returns the usage; nil if it is empty. The API counts
// what came from the cache, and what went into it, beside the input.
func (t tally) toUsage() *core.Usage {
	if p := t.passes; p != nil {
		t.input, t.output, t.read, t.write = max(t.input, p.input), max(t.output, p.output), max(t.read, p.read), max(t.write, p.write)
	}
	input := t.input + t.read + t.write
	if input <= 0 && t.output <= 0 {
		return nil
	}
	return &core.Usage{
		InputTokens: int(input), OutputTokens: int(t.output), ReasoningTokens: int(t.reasoning),
		CacheReadTokens: int(t.read), CacheWriteTokens: int(t.write),
	}
}

// finishReason returns the provider's word in ours, where ours means the same.
func finishReason(word sdk.StopReason, called bool) core.FinishReason {
	switch word {
	case sdk.StopReasonEndTurn, sdk.StopReasonStopSequence:
		if called { // proxies of other models
			return core.FinishToolCalls
		}
		return core.FinishStop
	case sdk.StopReasonMaxTokens, sdk.StopReasonModelContextWindowExceeded:
		return core.FinishLength
	case sdk.StopReasonToolUse:
		return core.FinishToolCalls
	case sdk.StopReasonRefusal:
		return core.FinishContentFilter
	default:
		return core.FinishReason(word)
	}
}
