package contextwindow

import (
	"cmp"
	"fmt"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/prompttext"
	"bobbin/app/core/tokens"
)

// Max cost of the fixed texts of a prompt, in cl100k_base tokens. Assemble writes these
// texts; a test checks the numbers against them.
const (
	ListOverhead     = tokens.ListOverhead
	maskTokens       = 64  // a masked tool result, overhead included
	missingTokens    = 32  // the placeholder for a missing result, overhead included
	summaryWrap      = 96  // the words around the summary
	pinnedWrap       = 48  // the words around the pinned messages
	pinnedLine       = 40  // the words around one of them
	leftOutMarker    = 128 // the block that says what is left out
	orphanWrap       = 16  // the words before a tool result without its call
	loopWrap         = 96  // the words around the notes on a tool loop, overhead included
	recalledWrap     = 112 // the words around the recalled passages, overhead included
	recalledDay      = 12  // a line with a day before them
	lineEnd          = 3   // of a line among them, and the mark of a gap before it
	standingWrap     = 128 // the words around the standing instructions, overhead included
	openingMarker    = 24  // the user's line before a conversation that begins with an assistant
	minShortened     = 96  // a shortened message: its marker and a little of its text
	shortPerCall     = 80  // and for each tool call that stays in it
	withdrawnTokens  = 32  // the message that withdraws a run's instructions, overhead included
	worthSummarizing = 64  // less than this is not worth a summary
)

// Item is a message as the plan sees it: its size and its place, not its text.
type Item struct {
	ID     core.MessageID
	Seq    int64
	Role   core.Role
	Tokens int      // cl100k_base, overhead, tool calls and the speaker's name included
	Native int      // of these, what files cost more than their text, as the model gets them as they are
	Calls  []string // ids of an assistant message's tool calls, in order
	CallID string   // of a tool message: the call it answers
	Pinned bool
	// Thoughts are the cl100k_base tokens of the model's own thoughts in the message, as part of
	// Tokens; 0 if the model does not bind them to their prefix.
	Thoughts int
	Recalled *core.RecalledPassages // that the prompt of these thoughts quoted
	Appended RunInstructions        // that it had
	Setup    string                 // with which they were produced (core.Part.Setup); empty = not known
	Frozen   string                 // with which their prompt began; empty = with Setup
	Unsaid   int                    // cl100k_base tokens of a speaker's name that only a summarizer sees
}

// ItemOf returns the item of a message of the log in a prompt for the model.
func ItemOf(m core.Message, model llm.Info, count core.TextCounter) Item {
	it := Item{ID: m.ID, Seq: m.Seq, Role: m.Role, Tokens: m.TokenCount, CallID: m.ToolCallID, Pinned: m.Pinned}
	it.Tokens += speakerTokens(m, count)
	for _, p := range m.Parts {
		if model.Takes(p) {
			it.Native += tokens.Pages(p)
		}
	}
	it.Tokens += it.Native
	it.addThoughts(m, model)
	for _, c := range m.ToolCalls {
		it.Calls = append(it.Calls, c.ID)
	}
	return it
}

// addThoughts counts the thoughts that go back to the model with the message. The stored count
// of a message has them only beside tool calls.
func (it *Item) addThoughts(m core.Message, model llm.Info) {
	if !model.Prefix.Binds() {
		return
	}
	for _, p := range m.Parts {
		if p.Type == core.PartReasoning && p.Origin != "" && p.Origin == model.ThoughtOrigin && p.Prefix != "" {
			it.Thoughts += p.Tokens
			it.Recalled = cmp.Or(it.Recalled, p.Recalled)
			if !model.AppendsInstructions() {
				continue
			}
			if p.Instructions > 0 && m.RunID != "" {
				it.Appended = RunInstructions{m.RunID, p.Instructions}
			}
			if it.Setup == "" {
				it.Setup, it.Frozen = p.Setup, p.Frozen
			}
		}
	}
	if len(m.ToolCalls) == 0 {
		it.Tokens += it.Thoughts
	}
}

// speakerTokens returns the cl100k_base tokens of the line that names the speaker of a message.
func speakerTokens(m core.Message, count core.TextCounter) int {
	if line := prompttext.SpeakerLine(m); line != "" {
		return count.Text(line)
	}
	return 0
}

// NamedItemOf is ItemOf for a message that a summarizer gets with its speaker's name, whether or not prompts show it.
func NamedItemOf(m core.Message, model llm.Info, count core.TextCounter) Item {
	it := ItemOf(m, model, count)
	if m.Role == core.RoleUser && !m.Named {
		m.Named = true
		it.Unsaid = speakerTokens(m, count)
	}
	return it
}

// Max tokens of a message that a summarizer sees, in cl100k_base tokens.
const (
	resultMaterial = 1_000 // of a tool result, of which it sees the beginning and the end
	lineMaterial   = 8     // the text before a message
)

// asText returns how many cl100k_base tokens the message has with its files as text.
func (it Item) asText() int { return it.Tokens - it.Native }

// Phase is when a plan is made.
type Phase int

// The phases.
const (
	BeforeCall Phase = iota // a prompt is about to be sent, and the user waits for it
	AfterRun                // no user waits: what should be summarized now or ahead?
)

// Input is everything that a plan depends on.
type Input struct {
	Policy Policy
	Loop   Loop
	Binds  bool // the model takes a thought only behind the prompt that it was produced behind
	Model  Limits
	Factor float64 // the model's tokens per cl100k_base token
	Margin float64 // error margin of the numbers, as a share; lowers the output limit only
	Cap    int     // after the provider refused a prompt: max size of the next; 0 = usable

	System      int             // cl100k_base tokens of the system blocks without the summary
	Tools       int             // of the tool definitions
	Setup       string          // hash of both; empty = they do not stay when they change
	Setups      Setups          // those of the thoughts and the current one, as far as known; nil = the current one is the only one
	ToolChanges llm.ToolChanges // how messages of the prompt may change the tools

	Summary core.SummaryVersion // in use; version 0 = none
	Pinned  []Item              // pinned messages that the summary covers
	History []Item              // on the path, after the cursor, before the run in progress; no system rows
	Run     []Item              // the run in progress: the user's message first; empty between runs
	State   PromptState

	Standing []Instruction // of the path, oldest first; their messages may be in the prompt
	Recalled []Passage     // messages that the user's message asks for, the best first; they may be in the prompt already

	Phase    Phase
	Versions []core.SummaryVersion // prepared versions that cover more than Summary, by ThroughSeq
	Busy     bool                  // another run or process is making a summary of this session
	Resting  bool                  // the summary model failed too often and is paused

	// OrderLimit is the max cl100k_base tokens of messages for one call of the summary
	// model. Only an order of a single turn may exceed it; 0 = no limit.
	OrderLimit int

	Force      bool // the user requested a summary
	NoSummary  bool // summarizing was tried and gains nothing more
	NoLoop     bool // the same for notes on the tool loop
	Summarized bool // a summary was just made: record the landing

	// Once is why the plan is for one prompt only and its state is not stored; empty = it is not.
	// Nothing is summarized then, and where messages do not fit, the others fill the window.
	Once string
}

// Order asks for a summary: of the history, which moves the cursor, or of kind run, which
// replaces the older part of a tool loop in the prompt.
type Order struct {
	Kind       core.SummaryKind
	SummaryID  core.SummaryID // of notes, set by the caller of Plan; Plan leaves it empty
	FromID     core.MessageID
	FromSeq    int64
	ThroughID  core.MessageID // the new cursor: the last message covered
	ThroughSeq int64
	OrderedSeq int64  // the last message to cover in all: by this order and the following ones
	Messages   int    // to add; of kind run all messages of the range, including those of earlier notes
	Tokens     int    // of what it replaces: those messages and the present summary, cl100k_base
	Limit      int    // max of the new summary, cl100k_base
	AskFor     int    // tokens that the summary prompt asks for; 0 = Limit
	Trigger    string // what started it
	Focus      string // what the user wants kept above all; Plan leaves it empty
	Rung       int    // 2, or 3 when the tail is below keep-at-least
	Strict     bool   // only a model's summary is useful: the prompt fits without one, or no user waits
	MadeFor    int    // see core.Summary
}

// Activation asks to activate a version of the summary. It calls no model.
type Activation struct {
	core.SummaryVersion
	Trigger string // that was crossed
}

// Slot is a message in the prompt.
type Slot struct {
	Item
	Place   core.Placement
	Size    int            // the model's tokens in the prompt
	Limit   int            // of a shortened message: its cl100k_base tokens; of the first message that notes replace: those of the notes
	Note    bool           // sent among the pinned notes, because its own place is left out or covered
	Loop    core.SummaryID // not empty: these notes replace it, unless it is left out
	Orphan  bool           // a tool result without its call: sent as text
	Bare    bool           // sent without its thoughts: a compaction changed the prompt before them
	Missing int            // tool calls without a result: Assemble adds placeholders

	Quotes   *core.RecalledPassages // quoted again before the message, for the thoughts of its answers; nil = none
	Repeated RunInstructions        // sent again behind the message, for the same thoughts
	NewSetup string                 // appended before the message, for its thoughts; empty = none
}

// FilesAsText reports whether the message is whole but for its files, which are sent as text.
func (s Slot) FilesAsText() bool {
	return s.Place == core.PlaceShortened && s.Native > 0 && s.Limit == s.asText()
}

// isWhole reports whether the prompt has the text of the message in its place.
func (s Slot) isWhole() bool { return s.Place == core.PlaceVerbatim || s.FilesAsText() }

// Decision is what is sent, and why.
type Decision struct {
	Budget          Budget
	Total           int // the prompt, in the model's tokens
	Sections        []core.ContextPart
	Triggers        []core.TriggerStatus
	Pinned          []Slot // covered or left out, sent as notes
	History         []Slot
	Run             []Slot
	Standing        []Instruction   // listed, oldest first
	Recalled        []Passage       // quoted, in the order of their seqs
	Loops           []LoopRange     // of History and Run, in order
	SummaryCut      int             // max cl100k_base tokens of the summary in the prompt; 0 = whole
	Setup           string          // Input.Setup
	Frozen          string          // setup with which the prompt begins in place of Setup; empty = with Setup
	AppendsSetup    bool            // Setup is appended at the end
	ToolChanges     llm.ToolChanges // Input.ToolChanges
	Summarize       *Order          // not nil: make this summary, then plan again
	Activate        *Activation     // not nil: activate this version, then plan again
	Prepare         *Order          // not nil: make this summary ahead; it changes no prompt
	Compacted       bool            // the PromptState changed and must be stored
	MaxOutput       int             // the request's output limit
	Rungs           []int           // rungs of the ladder, in the order in which they were climbed
	Reasons         []string
	Floor           *FloorError // not nil: nothing can be sent
	StandingOmitted int         // instructions that should be listed and have no room
	LacksSummary    bool        // see Without; Plan leaves it false
	Factor          float64     // that converted cl100k_base tokens to the model's

	Room        Room // what may follow before a trigger fires
	WillTrigger bool // one more user message and answer of the tail's average size start a summarization
	TurnsLeft   *int // how many average turns of the tail fit before a trigger fires or, without triggers, before the prompt is full; nil without a tail
}

// Room is what may follow a prompt before a trigger fires or a summary is to be prepared for one.
type Room struct {
	Messages int
	Tokens   int // of the model
}

// FloorError says that what cannot be shrunk does not fit the model's window.
type FloorError struct {
	Culprit string // system prompt, tools, pinned messages or message: the largest part
	Floor   int    // tokens
	Usable  int
}

// RungName says what a rung of the ladder does.
func RungName(n int) string {
	return [...]string{
		0: "quote fewer recalled passages", 1: "mask old tool results", 2: "summarize", 3: "summarize, keeping fewer recent messages", 4: "cut the summary",
		5: "summarize without a model", 6: "shorten messages", 7: "leave out the oldest", 8: "refuse",
	}[n]
}

// Error says what to do about it.
func (e *FloorError) Error() string {
	return fmt.Sprintf("the prompt cannot be made small enough: %d tokens cannot be shrunk, %d fit this model; the largest part is the %s: shorten it or use a model with a larger window",
		e.Floor, e.Usable, e.Culprit)
}

// Unwrap returns core.ErrContextFloor.
func (e *FloorError) Unwrap() error { return core.ErrContextFloor }

// After returns the input after the order has been carried out: with a summary of that many
// cl100k_base tokens that covers that many messages.
func (in Input) After(o Order, tokens, covered int) Input {
	if o.Kind == core.SummaryRun {
		in.State = in.withoutThoughts(o.FromSeq).State.withLoop(LoopRange{ID: o.SummaryID, From: o.FromSeq, Through: o.ThroughSeq, Tokens: tokens, MadeFor: o.MadeFor})
		return in
	}
	return in.Activated(core.SummaryVersion{Version: in.Summary.Version + 1, ThroughSeq: o.ThroughSeq, Tokens: tokens, Messages: covered, MadeFor: o.MadeFor})
}

// withBestSummary returns the input with a summary of the fewest tokens that covers the most messages.
func (in Input) withBestSummary() Input {
	p := newPlanner(in)
	cuts := p.cutPoints()
	if len(cuts) == 0 {
		return in
	}
	through := in.History[cuts[len(cuts)-1]-1].Seq
	return in.Activated(core.SummaryVersion{Version: in.Summary.Version + 1, ThroughSeq: through, Tokens: minSummaryCut})
}

// Activated returns the input right after the version of the summary was activated.
func (in Input) Activated(s core.SummaryVersion) Input {
	in.State.Loops, in.Summary = in.State.loopsBehind(s.ThroughSeq), s
	in.Versions = slices.DeleteFunc(slices.Clone(in.Versions), func(v core.SummaryVersion) bool { return v.ThroughSeq <= s.ThroughSeq })
	in.Summarized, in.Force = true, false
	var pinned, rest []Item
	for _, it := range in.History {
		switch {
		case it.Seq > s.ThroughSeq:
			rest = append(rest, it)
		case it.Pinned:
			pinned = append(pinned, it)
		}
	}
	in.Pinned = append(slices.Clone(in.Pinned), pinned...)
	in.History = rest
	if s.KeepsThoughts {
		return in
	}
	return in.withoutThoughts(0)
}
