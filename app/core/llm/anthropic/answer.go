package anthropic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
)

// answer reads one answer and hands it on piece by piece.
type answer struct {
	providerhttp.Answer

	origin, provider string // of the signatures in it; for errors
	compacts         bool   // it is to be a compaction

	compactions []core.Part

	blocks map[int]*openedBlock
	calls  int    // so far
	usage  usage  // so far: what comes later counts for what came before, and what is left out leaves it
	passes usage  // all of them together, where the answer lists them
	model  string // that answered, as reported
	stop   string
	ended  bool // message_stop came
}

// event is an event of a stream.
type event struct {
	Type         string `json:"type"`
	Index        int    `json:"index"`
	Message      reply  `json:"message"`
	ContentBlock piece  `json:"content_block"`
	Delta        piece  `json:"delta"`
	reply               // of a message_delta
}

// reply is a whole answer, or what an event has of it.
type reply struct {
	Model   string                       `json:"model"`
	Stop    string                       `json:"stop_reason"`
	Usage   usage                        `json:"usage"`
	Content []piece                      `json:"content"`
	Dropped providerhttp.Transformations `json:"input_transformations"`
}

// piece is a block of content or a delta of one.
type piece struct {
	Type        string          `json:"type"`
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	Text        string          `json:"text"`
	Thinking    string          `json:"thinking"`
	Data        string          `json:"data"`
	Input       json.RawMessage `json:"input"`
	PartialJSON string          `json:"partial_json"`
	Stop        string          `json:"stop_reason"`
	Content     string          `json:"content"` // of a compaction
	opaque
}

type usage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
	Details    struct {
		Thinking int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
	Iterations []usage `json:"iterations"`
}

// openedBlock is a content block on its way.
type openedBlock struct {
	piece

	call     int    // of a tool call: its place among the calls
	streamed bool   // of a tool call: arguments came after its start
	thinking []byte // pieces so far
}

// read reads the answer to its end, streamed or not.
func (a *answer) read(body io.Reader) error {
	a.blocks = map[int]*openedBlock{}
	err := a.Read(body, a.readWhole, a.handleEvent, func() bool { return a.ended })
	switch last := (llm.Delta{Usage: a.usage.atLeast(a.passes).toCore(), Finish: finishReason(a.stop, a.calls > 0), Model: a.model}); {
	case err != nil:
		return err
	case a.stop == "":
		return providerhttp.ErrTruncated
	case a.compacts:
		first := append(a.compactions, core.Part{})[0]
		fault := ""
		switch {
		case max(len(first.Text), len(first.Signature)) > llm.MaxCompaction:
			fault = fmt.Sprintf("the compaction is larger than %d MiB", llm.MaxCompaction>>20)
		case len(a.compactions) > 1:
			fault = fmt.Sprintf("the provider returned %d compactions instead of one", len(a.compactions))
		case a.stop != "compaction":
			fault = fmt.Sprintf("the provider returned no compaction: it stopped with %q", a.stop)
		case first.Text == "":
			fault = "the provider returned an empty compaction"
		}
		if fault != "" {
			if err := a.EmitDelta(llm.Delta{Usage: last.Usage}); err != nil {
				return err
			}
			return &llm.Error{Kind: llm.KindInvalid, Provider: a.provider, Message: fault}
		}
		first.Type, last.Finish = core.PartCompaction, core.FinishStop
		if err := a.EmitDelta(llm.Delta{Compaction: &first}); err != nil {
			return err
		}
		return a.EmitDelta(last)
	default:
		return a.EmitDelta(last)
	}
}

// handleEvent handles one event.
func (a *answer) handleEvent(data []byte) error {
	var e event
	if err := providerhttp.Decode(data, &e); err != nil {
		return err
	}
	switch e.Type {
	case "error":
		return a.Refusal(data)
	case "message_start":
		return a.addReply(e.Message)
	case "content_block_start":
		return a.openBlock(e.Index, e.ContentBlock)
	case "content_block_delta":
		return a.continueBlock(e.Index, e.Delta)
	case "content_block_stop":
		return a.closeBlock(e.Index)
	case "message_delta":
		e.Stop = e.Delta.Stop
		return a.addReply(e.reply)
	case "message_stop":
		a.ended = true
	}
	return nil
}

// addReply adds what is known of the whole answer.
func (a *answer) addReply(r reply) error {
	a.model, a.stop = cmp.Or(r.Model, a.model), cmp.Or(r.Stop, a.stop)
	// All passes that an answer took are billed, but the usage beside their list has the last one only,
	// and nothing of a compaction.
	a.usage = a.usage.atLeast(r.Usage)
	if len(r.Usage.Iterations) > 0 {
		a.passes = usage{}
	}
	for _, pass := range r.Usage.Iterations {
		a.passes.Input += max(pass.Input, 0)
		a.passes.Output += max(pass.Output, 0)
		a.passes.CacheRead += max(pass.CacheRead, 0)
		a.passes.CacheWrite += max(pass.CacheWrite, 0)
	}
	return a.EmitDelta(llm.Delta{Dropped: r.Dropped.ToCore()})
}

// openBlock begins a block.
func (a *answer) openBlock(index int, start piece) error {
	b := &openedBlock{piece: start, thinking: []byte(start.Thinking)}
	a.blocks[index] = b
	switch start.Type {
	case "text":
		return a.EmitDelta(llm.Delta{Text: start.Text})
	case "thinking":
		return a.EmitDelta(llm.Delta{Reasoning: start.Thinking})
	case "tool_use":
		b.call = a.calls
		a.calls++
		return a.EmitDelta(llm.Delta{ToolCall: &llm.ToolCallDelta{Index: b.call, ID: a.UniqueCallID(start.ID), Name: start.Name}})
	}
	return nil
}

// continueBlock adds a piece to a block. A block whose beginning did not come has the kind
// of its piece.
func (a *answer) continueBlock(index int, d piece) error {
	b := a.blocks[index]
	if b == nil {
		b = &openedBlock{}
		a.blocks[index] = b
	}
	switch d.Type {
	case "text_delta":
		return a.EmitDelta(llm.Delta{Text: d.Text})
	case "thinking_delta":
		b.thinking = append(b.thinking, d.Thinking...)
		return a.EmitDelta(llm.Delta{Reasoning: d.Thinking})
	case "signature_delta":
		b.Signature += d.Signature
	case "compaction_delta": // replaces what the block began with
		b.Content, b.EncryptedContent = cmp.Or(d.Content, b.Content), cmp.Or(d.EncryptedContent, b.EncryptedContent)
		b.Signature = cmp.Or(d.Signature, b.Signature)
		if d.ToolChanges != nil {
			b.ToolChanges = d.ToolChanges
		}
	case "input_json_delta":
		if b.Type != "tool_use" || d.PartialJSON == "" {
			return nil
		}
		b.streamed = true
		return a.EmitDelta(llm.Delta{ToolCall: &llm.ToolCallDelta{Index: b.call, Arguments: d.PartialJSON}})
	}
	return nil
}

// closeBlock ends a block. Its thoughts go into the log as one part.
func (a *answer) closeBlock(index int) error {
	b := a.blocks[index]
	if b == nil {
		return nil
	}
	delete(a.blocks, index)
	switch b.Type {
	case "tool_use":
		if b.streamed || len(b.Input) == 0 || string(b.Input) == "{}" || string(b.Input) == "null" {
			return nil
		}
		return a.EmitDelta(llm.Delta{ToolCall: &llm.ToolCallDelta{Index: b.call, Arguments: string(b.Input)}})
	case "thinking":
		return a.emitThinking(core.Part{Text: string(b.thinking), Signature: b.Signature})
	case "redacted_thinking":
		return a.emitThinking(core.Part{Name: redacted, Signature: b.Data})
	case core.PartCompaction:
		// Its opaque members are the signature; where there are more than one, as a JSON object.
		part, members := core.Part{Text: b.Content, Signature: b.opaque.Signature, Origin: a.origin}, b.opaque
		if string(members.ToolChanges) == "null" {
			members.ToolChanges = nil
		}
		if members.EncryptedContent != "" || members.ToolChanges != nil {
			if raw, err := json.Marshal(members); err == nil { // it came as JSON
				part.Signature = string(raw)
			}
		}
		a.compactions = append(a.compactions, part)
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

// readWhole takes the answer of a server that did not stream.
func (a *answer) readWhole(text []byte) error {
	var whole event
	if err := providerhttp.IgnoreType(json.Unmarshal(text, &whole)); err != nil || whole.Type != "message" {
		return a.Refusal(text)
	}
	if err := a.addReply(whole.reply); err != nil {
		return err
	}
	for i, b := range whole.reply.Content {
		if err := a.openBlock(i, b); err != nil {
			return err
		}
		if err := a.closeBlock(i); err != nil {
			return err
		}
	}
	return nil
}

// atLeast returns the larger of both counts, one by one.
func (u usage) atLeast(v usage) usage {
	u.Input, u.Output = max(u.Input, v.Input), max(u.Output, v.Output)
	u.CacheRead, u.CacheWrite = max(u.CacheRead, v.CacheRead), max(u.CacheWrite, v.CacheWrite)
	u.Details.Thinking = max(u.Details.Thinking, v.Details.Thinking)
	return u
}

// toCore returns the usage; nil if it is empty. The API counts
// what came from the cache, and what went into it, beside the input.
func (u usage) toCore() *core.Usage {
	input := u.Input + u.CacheRead + u.CacheWrite
	if input <= 0 && u.Output <= 0 {
		return nil
	}
	return &core.Usage{
		InputTokens: int(input), OutputTokens: int(u.Output), ReasoningTokens: int(u.Details.Thinking),
		CacheReadTokens: int(u.CacheRead), CacheWriteTokens: int(u.CacheWrite),
	}
}

// finishReason returns the provider's word in ours, where ours means the same.
func finishReason(word string, called bool) core.FinishReason {
	switch word {
	case "end_turn", "stop_sequence":
		if called { // proxies of other models
			return core.FinishToolCalls
		}
		return core.FinishStop
	case "max_tokens", "model_context_window_exceeded":
		return core.FinishLength
	case "tool_use":
		return core.FinishToolCalls
	case "refusal":
		return core.FinishContentFilter
	default:
		return core.FinishReason(word)
	}
}
