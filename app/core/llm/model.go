package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"strings"

	"bobbin/app/core"
)

// Model is a language model, bound to one model name of one provider.
type Model interface {
	// Stream sends the request and yields what comes back, in order. The first
	// error ends the stream and is an *Error: KindCanceled when ctx ended it (also by its
	// deadline), KindTimeout when one of our own limits passed. Without an error the last deltas
	// carry Finish and, where the provider reports it, Usage. The caller stops a
	// stream by leaving the loop, or by canceling ctx. Everything happens on the caller's goroutine;
	// when the loop has ended, the request has too.
	Stream(ctx context.Context, req Request) iter.Seq2[Delta, error]
	// Info describes the model.
	Info() Info
}

// Info describes a model.
type Info struct {
	Name     string // what agents call it
	Provider string // openai, anthropic, gemini, ollama, demo …
	Window   int    // context window in tokens, prompt and answer together
	// WindowFrom is the source of Window; empty = WindowKnown.
	WindowFrom WindowSource
	MaxOutput  int // max tokens of an answer; 0 = not known
	// PriorFactor is how many of the provider's tokens one cl100k_base token is
	// expected to be, before anything was measured; 0 = 1.
	PriorFactor float64
	Images      bool      // it sees images; other models get descriptions
	Documents   Documents // the PDFs that it gets as files
	// NoToolChoice: the provider has no tool choice; for "none" tool turns become text.
	NoToolChoice bool
	OpensThought bool    // its server's template ends a prompt with the begin tag of a thought: the answer lacks it
	InputPrice   float64 // US dollars per million tokens; 0 = not known
	OutputPrice  float64
	// Of the parts of a prompt that the provider's cache held, or took; 0 = as InputPrice.
	CacheReadPrice  float64
	CacheWritePrice float64
	// Lacks are the parameters that the model does not take; the adapter fills it in.
	Lacks []Parameter

	Prefix PrefixContract // what it does with thoughts behind a changed prompt, as far as its name or the configuration says
	// ThoughtOrigin is core.Part.Origin of the thoughts that the model takes back; empty = it takes
	// none. The adapter fills it in, and Account.
	ThoughtOrigin string
	Account       string // tells accounts at the provider apart, without telling which: a short hash of address and key
	// SystemMessages: a prompt may have messages of the role system among the others, each between a
	// message of the user and one of the assistant, or last. The adapter fills it in; the others leave
	// such messages out.
	SystemMessages bool
	ToolChanges    ToolChanges // how system messages may change the tools; the adapter fills it in
	// ReasoningUncounted: the reasoning that goes back to the provider is not in the usage
	// that it reports.
	ReasoningUncounted bool

	// Compacts: the provider can write compactions (Request.Compact), behind which the thoughts of the
	// next messages stay valid. The adapter fills it in.
	Compacts bool
}

// WindowSource is where a window comes from.
type WindowSource string

// The sources of windows.
const (
	WindowConfigured WindowSource = "configuration" // takes precedence over what the provider reports
	WindowKnown      WindowSource = "model"         // by the model's name
	WindowAssumed    WindowSource = "default"       // the model is not known
	WindowReported   WindowSource = "provider"      // learned from refused prompts: reported by the provider, or a size that it accepted
)

// Request is one prompt.
type Request struct {
	// System are the system blocks in order; adapters without blocks join them
	// by an empty line.
	System []string
	// Messages may begin with a compaction, on a model that Compacts: a message of the user without
	// Content whose only part is a core.PartCompaction. It takes the place of the messages that it
	// summarizes, and those that followed them are next.
	Messages        []Message
	Tools           []ToolSpec
	ToolChoice      core.ToolChoice
	MaxOutputTokens int      // 0 = the provider's default
	Temperature     *float64 // nil = the provider's default
	// The other parameters of the agent; zero = the provider's defaults. See WithParameters.
	TopP            *float64
	Stop            []string
	Seed            *int
	ReasoningEffort string
	ResponseFormat  *core.ResponseFormat
	// ParallelToolCalls says whether an answer may have several tool calls; nil = the
	// provider's default.
	ParallelToolCalls *bool
	// ChecksPrefix says that the model compares the prompt before each thought with that of its
	// making: the provider is to leave out the thoughts that do not match, and to report them.
	ChecksPrefix bool
	Prefix       string // core.Part.Prefix of the thoughts in the answer; empty = they do not go back
	// Compact asks the provider to summarize the messages instead of answering; the model must be
	// one that Compacts. The answer is Delta.Compaction, with the finish reason stop. An empty one,
	// several and one of more than MaxCompaction bytes are an *Error of KindInvalid.
	Compact bool
	// Background marks a call whose thoughts no user reads: a summary or a title.
	Background bool
	// Once keeps WithRetry from repeating the call.
	Once bool
}

// SystemText returns the system blocks as one text, for providers without blocks.
func (r Request) SystemText() string {
	return core.Join("\n\n", r.System...)
}

// MaxCompaction is how many bytes the text and the signature of a compaction may have, each.
const MaxCompaction = 1 << 20

// SplitCompaction returns the compaction with which the prompt begins and the messages behind it;
// nil and all messages = it begins with none.
func (r Request) SplitCompaction() (*core.Part, []Message) {
	if len(r.Messages) == 0 {
		return nil, r.Messages
	}
	first := r.Messages[0]
	if first.Role != core.RoleUser || first.Content != "" || len(first.Parts) != 1 || first.Parts[0].Type != core.PartCompaction {
		return nil, r.Messages
	}
	return &first.Parts[0], r.Messages[1:]
}

// Message is a message as a model sees it.
type Message struct {
	Role       core.Role // user, assistant or tool; system only for a model of Info.SystemMessages
	Content    string
	Parts      []core.Part // reasoning, and text that is not the Content; Media has the images and files
	Media      []Media     // of a user's message; only what the model takes (Info.Takes)
	ToolCalls  []core.ToolCall
	ToolCallID string
	ToolName   string
	// Of a system message, as Info.ToolChanges allows: tools that may be called from here on, each in
	// place of an earlier one of its name, and names of tools that may no longer.
	AddedTools   []ToolSpec
	RemovedTools []string
	Passing      bool // the next prompt may not have it: what precedes it is what a cache can read then
}

// Media is an image or a file that a model gets unchanged.
type Media struct {
	core.Part
	Data []byte // never changed
}

// ToolSpec describes a tool to a model.
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // JSON Schema of an object
	// Strict says whether calls must follow the schema exactly; nil = the provider's default.
	Strict *bool `json:"strict,omitempty"`
}

// Schema returns the parameters; of a tool without any, an object without members.
func (t ToolSpec) Schema() json.RawMessage {
	if len(t.Parameters) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return t.Parameters
}

// Delta is one piece of an answer. Any of its fields may be set.
type Delta struct {
	Text      string
	Reasoning string
	// Part is a block of reasoning that is complete and goes back to the provider
	// unchanged; its text was yielded before, piece by piece, as Reasoning.
	Part *core.Part
	// Dropped are thoughts of the prompt that the provider left out.
	Dropped *DroppedThoughts
	// Compaction is the whole answer to a request with Compact: a core.PartCompaction. Text and
	// Signature go back as they came.
	Compaction *core.Part
	ToolCall   *ToolCallDelta
	Usage      *core.Usage
	Finish     core.FinishReason
	Model      string // with Finish: the model that answered; empty = the provider does not report it
	Queued     bool   // the call waits for a slot of its server, until the next delta
}

// DroppedThoughts are thoughts of a prompt that the model did not see.
type DroppedThoughts struct {
	Contract PrefixContract     // what the provider did with the prompt
	Reasons  map[DropReason]int // how many for each reason
}

// DropReason is why a provider left out a thought.
type DropReason string

// The reasons.
const (
	DropPrefix       DropReason = "prefix"       // the prompt before it differs from that of its making
	DropModel        DropReason = "model"        // another model made it
	DropOrganization DropReason = "organization" // another account made it
	DropEndUser      DropReason = "end_user"
	DropOther        DropReason = "other"
)

// ToolCallDelta is a piece of a tool call. Pieces with the same Index belong to
// one call: ID, Name and Signature come once, Arguments are appended.
type ToolCallDelta struct {
	Index     int
	ID        string
	Name      string
	Arguments string
	Signature string // see core.ToolCall
}

// Response is a whole answer.
type Response struct {
	Text       string
	Reasoning  string
	Parts      []core.Part      // blocks of reasoning that go back unchanged; most providers send none
	Dropped    *DroppedThoughts // nil = the model saw all thoughts of the prompt, or the provider does not report it
	Compaction *core.Part       // as it came; nil = none was asked for
	ToolCalls  []core.ToolCall
	Usage      *core.Usage // nil = the provider did not report it
	Finish     core.FinishReason
}

// Collect reads a stream to its end and returns the answer, in text that every database takes: what
// is shown is what is stored, byte for byte. Thoughts that the model wrote at the beginning of its
// text, between <think> and </think> or the like, are Reasoning; Usage is Corrected. It calls onDelta,
// unless that is nil, with each delta first. A thought whose begin tag is in the prompt is known by its
// end only: deltas have it as text, the Response as Reasoning. On an error the Response holds what came before it.
func Collect(stream iter.Seq2[Delta, error], onDelta func(Delta)) (Response, error) {
	var res Response
	var text, reasoning strings.Builder
	calls := map[int]*core.ToolCall{}
	var order []int
	spoken := 0 // bytes of text before the first call
	add := func(d Delta) {
		if onDelta != nil {
			onDelta(d)
		}
		text.WriteString(d.Text)
		reasoning.WriteString(d.Reasoning)
		if d.Part != nil {
			part := *d.Part
			part.Offset, part.Calls = text.Len(), len(order)
			res.Parts = append(res.Parts, part)
		}
		if d.Usage != nil {
			res.Usage = new(d.Usage.Corrected())
		}
		res.Dropped, res.Compaction, res.Finish = cmp.Or(d.Dropped, res.Dropped), cmp.Or(d.Compaction, res.Compaction), cmp.Or(d.Finish, res.Finish)
		if len(order) == 0 {
			spoken = text.Len()
		}
		order = addToolCall(calls, order, d.ToolCall)
	}
	var failure error
	var thoughts thoughtReader
	for d, err := range stream {
		if err != nil {
			failure = err
			break
		}
		add(thoughts.separate(cleanDelta(d))) // models send whole characters: providers speak JSON
	}
	var rest, thought strings.Builder // what a stream without a finish reason left held
	thoughts.end(&rest, &thought)
	if rest.Len()+thought.Len() > 0 {
		add(Delta{Text: rest.String(), Reasoning: thought.String()})
	}
	res.Text, res.Reasoning = text.String(), reasoning.String()
	if res.Reasoning == "" && len(res.Parts) == 0 {
		thought, rest := splitOpened(res.Text[:spoken])
		res.Reasoning, res.Text = thought, rest+res.Text[spoken:]
	}
	for _, i := range order {
		res.ToolCalls = append(res.ToolCalls, *calls[i])
	}
	return res, failure
}

// addToolCall adds the piece to its call and returns the order of first appearance.
func addToolCall(calls map[int]*core.ToolCall, order []int, d *ToolCallDelta) []int {
	if d == nil {
		return order
	}
	call, ok := calls[d.Index]
	if !ok {
		call = &core.ToolCall{}
		calls[d.Index] = call
		order = append(order, d.Index)
	}
	call.ID, call.Name, call.Signature = cmp.Or(d.ID, call.ID), cmp.Or(d.Name, call.Name), cmp.Or(d.Signature, call.Signature)
	call.Arguments += d.Arguments
	return order
}

func cleanDelta(d Delta) Delta {
	d.Text, d.Reasoning = core.CleanText(d.Text), core.CleanText(d.Reasoning)
	d.Finish = core.FinishReason(core.CleanText(string(d.Finish)))
	if d.Part != nil {
		p := *d.Part
		p.Text, p.Name, p.Signature = core.CleanText(p.Text), core.CleanText(p.Name), core.CleanText(p.Signature)
		d.Part = &p
	}
	if d.ToolCall != nil {
		c := *d.ToolCall
		c.ID, c.Name = core.CleanText(c.ID), core.CleanText(c.Name)
		c.Arguments, c.Signature = core.CleanText(c.Arguments), core.CleanText(c.Signature)
		d.ToolCall = &c
	}
	return d
}

// Models finds language models by name; an empty name is the default model.
type Models interface {
	Get(name string) (Model, error)
	// Preferred returns the model of the same provider that does background work for
	// conversations with the named model; false = the named model does it itself.
	Preferred(name string, p Preference) (Model, bool)
}

// Budget returns why the model may not be called for the owner now: what may be spent is spent.
type Budget func(ctx context.Context, owner string, model Info) error

// TokenCounter counts everything that prompts are made of, in cl100k_base.
type TokenCounter interface {
	core.TextCounter
	Message(m core.Message) int
	Tools(list []ToolSpec) int
}
