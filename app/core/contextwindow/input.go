package contextwindow

import (
	"fmt"
	"slices"

	"bobbin/app/core"
)

// What the fixed texts of a prompt cost at most, in cl100k_base tokens. Assemble
// writes these texts; a test holds the numbers against them.
const (
	ListOverhead     = 3   // of a message list (B8)
	maskTokens       = 64  // a masked tool result, overhead included
	missingTokens    = 32  // the result that stands in for a missing one, overhead included
	summaryWrap      = 96  // the words around the summary
	pinnedWrap       = 48  // the words around the pinned messages
	pinnedLine       = 40  // the words around one of them
	leftOutMarker    = 128 // the block that says what is left out
	orphanWrap       = 16  // the words before a tool result without its call
	loopWrap         = 96  // the words around the notes on a tool loop, overhead included
	openingMarker    = 24  // the user's line before a conversation that an assistant began
	shortMinimum     = 96  // a shortened message: its marker and a little of its text
	shortPerCall     = 80  // and for each tool call that stays in it
	worthSummarizing = 64  // less than this is not worth a summary
)

// Item is a message as the plan sees it: its size and its place, not its text.
type Item struct {
	ID     core.MessageID
	Seq    int64
	Role   core.Role
	Tokens int      // cl100k_base, overhead and tool calls included
	Calls  []string // ids of an assistant message's tool calls, in order
	CallID string   // of a tool message: the call it answers
	Pinned bool
	Images bool // it has images
}

// ItemOf returns the item of a message of the log.
func ItemOf(m core.Message) Item {
	it := Item{ID: m.ID, Seq: m.Seq, Role: m.Role, Tokens: m.TokenCount, CallID: m.ToolCallID, Pinned: m.Pinned}
	it.Images = slices.ContainsFunc(m.Parts, func(p core.Part) bool { return p.Type == core.PartImage })
	for _, c := range m.ToolCalls {
		it.Calls = append(it.Calls, c.ID)
	}
	return it
}

// minimum returns to how many cl100k_base tokens the message can be shortened.
func (it Item) minimum() int { return min(it.Tokens, shortMinimum+shortPerCall*len(it.Calls)) }

// ActiveSummary is the summary in use, or one that is ready to be.
type ActiveSummary struct {
	Version    int   // 0 = no summary
	ThroughSeq int64 // the cursor; 0 = no summary
	Tokens     int   // cl100k_base tokens of its text
	Messages   int   // that it covers
}

// Moment is when a plan is made.
type Moment int

// The moments.
const (
	BeforeCall Moment = iota // a prompt is about to be sent, and somebody waits for it
	AfterRun                 // nobody waits: what is to be summarized now or ahead?
)

// Input is all that a plan depends on.
type Input struct {
	Policy Policy
	Loop   Loop
	Model  Limits
	Factor float64 // the model's tokens per cl100k_base token
	Margin float64 // how far the numbers may be off, as a share; lowers the output limit only
	Cap    int     // after the provider refused a prompt: the next must be at most so large; 0 = usable

	System  int // cl100k_base tokens of the system blocks without the summary
	Tools   int // of the tool definitions
	Summary ActiveSummary
	Pinned  []Item // pinned messages that the summary covers
	History []Item // on the path, after the cursor, before the run in progress; no system rows
	Run     []Item // the run in progress: the user's message first; empty between runs
	State   PromptState

	Moment   Moment
	Prepared ActiveSummary // is ready, extends Summary and changes no prompt yet; version 0 = none
	Busy     bool          // a summary of this session is being made right now, by somebody else
	Resting  bool          // the summary model failed too often: it is not asked for a while

	Force      bool // the user asked for a summary
	NoSummary  bool // summarizing was tried already and brings nothing more
	NoLoop     bool // the same of notes on the tool loop
	Summarized bool // a summary was just made: record where the prompt lands
}

// Order asks for a summary: of the history, which moves the cursor, or of kind run,
// which replaces the older part of a tool loop in the prompt.
type Order struct {
	Kind       core.SummaryKind
	SummaryID  core.SummaryID // of notes, given by whoever carries the order out; Plan leaves it empty
	FromID     core.MessageID
	FromSeq    int64
	ThroughID  core.MessageID // the new cursor: the last message covered
	ThroughSeq int64
	Messages   int    // to be added; of kind run all of the range, those of the notes so far included
	Tokens     int    // of what it replaces: those messages and the summary so far, cl100k_base
	Limit      int    // most of the new summary, cl100k_base
	AskFor     int    // what the prompt asks for; 0 = Limit
	Trigger    string // what started it
	Focus      string // what the user asked to keep above all; Plan leaves it empty
	Rung       int    // 2, or 3 when the tail is below keep-at-least
	Strict     bool   // only a model's summary is of use: the prompt fits without one, or nobody waits for it
}

// Activation asks for the prepared summary to be put to use. No model is called.
type Activation struct {
	Version int
	Trigger string // that was crossed
}

// Slot is a message in the prompt.
type Slot struct {
	Item
	Place   core.Placement
	Size    int            // the model's tokens in the prompt
	Limit   int            // of a shortened message: its cl100k_base tokens; of the first that notes stand for: those of the notes
	Note    bool           // sent among the pinned notes, as its own place is left out or covered
	Loop    core.SummaryID // not empty: these notes stand for it, unless it is left out
	Orphan  bool           // a tool result without its call: told as text
	Missing int            // tool calls whose result is missing: Assemble stands in for them
}

// Decision is what is sent, and why.
type Decision struct {
	Budget     Budget
	Total      int // the prompt, in the model's tokens
	Sections   []core.ContextPart
	Triggers   []core.TriggerStatus
	Pinned     []Slot // covered or left out, sent as notes
	History    []Slot
	Run        []Slot
	Loops      []LoopRange // of History and Run, in order
	SummaryCut int         // the summary is shown with so many cl100k_base tokens; 0 = whole
	Summarize  *Order      // not nil: make this summary, then plan again
	Activate   *Activation // not nil: put the prepared summary to use, then plan again
	Prepare    *Order      // not nil: make this summary ahead; it changes no prompt
	Compacted  bool        // the PromptState changed and must be stored
	MaxOutput  int         // the request's output limit
	Rungs      []int       // of the ladder, in the order in which they were climbed
	Reasons    []string
	Floor      *FloorError // not nil: nothing can be sent
	Factor     float64     // that corrected the numbers
}

// FloorError says that what cannot be shrunk does not fit the model's window.
type FloorError struct {
	Culprit string // system prompt, tools, pinned messages or message: the largest part
	Floor   int    // tokens
	Usable  int
}

// RungName says what a rung of the ladder does (CONTEXT § 4).
func RungName(n int) string {
	names := map[int]string{
		1: "mask old tool results", 2: "summarize", 3: "summarize, keeping fewer recent messages", 4: "cut the summary",
		5: "summarize without a model", 6: "shorten messages", 7: "leave out the oldest", 8: "refuse",
	}
	return names[n]
}

// Error says what to do about it.
func (e *FloorError) Error() string {
	return fmt.Sprintf("the prompt cannot be made small enough: %d tokens cannot be shrunk, %d fit this model; the largest part is the %s: shorten it or use a model with a larger window",
		e.Floor, e.Usable, e.Culprit)
}

// Unwrap returns core.ErrContextFloor.
func (e *FloorError) Unwrap() error { return core.ErrContextFloor }

// After returns the input as it is when the order has been carried out: with a
// summary of so many cl100k_base tokens that covers so many messages.
func (in Input) After(o Order, tokens, covered int) Input {
	if o.Kind == core.SummaryRun {
		in.State = in.State.withLoop(LoopRange{ID: o.SummaryID, From: o.FromSeq, Through: o.ThroughSeq, Tokens: tokens})
		return in
	}
	return in.using(ActiveSummary{Version: in.Summary.Version + 1, ThroughSeq: o.ThroughSeq, Tokens: tokens, Messages: covered})
}

// Activated returns the input as it is when the prepared summary is in use.
func (in Input) Activated() Input { return in.using(in.Prepared) }

// using returns the input as it is right after the summary has come into use.
func (in Input) using(s ActiveSummary) Input {
	in.State.Loops = in.State.loopsBehind(s.ThroughSeq)
	in.Summary, in.Prepared = s, ActiveSummary{}
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
	return in
}
