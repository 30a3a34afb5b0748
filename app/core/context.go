package core

import (
	"encoding/json"
	"time"
)

// Placement says where a message of the log is in the prompt. Every message on
// the path has exactly one.
type Placement string

// The placements.
const (
	PlaceCovered   Placement = "covered"   // by the active summary, or by notes on a tool loop
	PlaceVerbatim  Placement = "verbatim"  // sent as it is
	PlaceMasked    Placement = "masked"    // an old tool result, replaced by a marker
	PlaceShortened Placement = "shortened" // its head and tail with a marker between
	PlaceLeftOut   Placement = "left_out"  // not sent, a marker says so
	PlaceRecalled  Placement = "recalled"  // of a prompt's message alone: it quotes messages that the user's message asks for
	PlaceStanding  Placement = "standing"  // of a prompt's message alone: it lists standing instructions
	PlaceExcluded  Placement = "excluded"  // a system row: never sent

	// PlaceInstructions: of a prompt's message alone: it has the instructions of a run.
	PlaceInstructions Placement = "instructions"
	// PlaceSystem: of a prompt's message alone: it has the system prompt from there on.
	PlaceSystem Placement = "system"
)

// ContextReport says what the next prompt of a session will be made of. All
// token numbers are corrected estimates of the model's own tokens; those of Used and
// of the sections are counts of the very texts that are sent.
type ContextReport struct {
	Model       string          `json:"model"`
	Policy      string          `json:"policy"`
	Window      int             `json:"window"`
	WindowFrom  string          `json:"window_source" enum:"configuration,model,default,provider" doc:"configuration: your settings; model: the built-in model table; default: the model is unknown; provider: a refused prompt."`
	Reserve     int             `json:"reserve" doc:"Reserved for the answer."`
	Usable      int             `json:"usable" doc:"The maximum size of a prompt."`
	Trigger     int             `json:"trigger" doc:"Above it, the oldest turns are summarized."`
	Landing     int             `json:"landing" doc:"The size of the prompt after that."`
	Used        int             `json:"used" doc:"The next prompt."`
	Planned     int             `json:"planned" doc:"The same with markers and the text around a summary at their maximum: it is compared with triggers and 'usable'."`
	Free        int             `json:"free" doc:"usable minus used."`
	MaxOutput   int             `json:"max_output_tokens"`
	Sections    []ContextPart   `json:"sections"`
	Triggers    []TriggerStatus `json:"triggers"`
	WillTrigger bool            `json:"will_trigger" doc:"The next message and its answer will start a summarization."`
	TurnsLeft   *int            `json:"turns_left,omitempty" doc:"Turns at the current rate until a summarization, or until the window is full. Absent while the rate is unknown."`
	Coverage    Coverage        `json:"coverage" doc:"Every message of the log is in exactly one of these places."`
	Calibration CalibrationView `json:"calibration"`
	Breaker     string          `json:"breaker" enum:"closed,open" doc:"Circuit breaker. open: the summarizer failed three times in a row and is not called for a while."`
	OpenUntil   *time.Time      `json:"breaker_until,omitempty" doc:"Time of the next attempt."`
	Failure     string          `json:"breaker_reason,omitempty" doc:"The last failure, also while the breaker is closed."`
	Summarizing bool            `json:"summarizing" doc:"A summary is in progress."`
	Since       *time.Time      `json:"summarizing_since,omitempty" doc:"When it started."`
	Prepared    *Summary        `json:"prepared,omitempty" doc:"A prepared summary, which changes no prompt before a trigger is crossed."`
	Overflows   int             `json:"overflows,omitempty" doc:"Of a run: number of prompts that the provider refused as too long."`
	Rungs       []string        `json:"rungs" doc:"The measures that make the prompt fit; of a run, those of all its prompts."`
	Reasons     []string        `json:"reasons"` // what was decided and why, in words
	Summaries   []Summary       `json:"summaries"`

	Thoughts             *ThoughtsReport       `json:"thoughts,omitempty" doc:"Earlier thoughts (reasoning with a signature) in the messages of the prompt. Absent without any."`
	StandingInstructions []StandingInstruction `json:"standing_instructions,omitempty" doc:"Those that stand, with their places in the prompt, oldest first; if there are many, the newest 200."`

	Digests        string           `json:"digests,omitempty" doc:"Of a run: four characters for each part of its last prompt, by which later prompts are compared."`
	SummaryVersion int              `json:"summary_version" doc:"The version that the prompt uses; 0 = none. After a change to a larger model the next message may use an older one."`
	SummaryReason  string           `json:"summary_reason,omitempty" doc:"What it covers, and why this version."`
	Versions       []SummaryVersion `json:"versions,omitempty" doc:"The versions that a prompt can use, those with the smallest coverage first; if there are many, the newest."`
}

// ThoughtsReport says what becomes of the model's earlier thoughts in a prompt: reasoning that its
// provider signed.
type ThoughtsReport struct {
	Contract string          `json:"contract" enum:"free,drops,refuses" doc:"What the model does with a thought when the prompt before it has changed."`
	Kept     int             `json:"kept" doc:"Sent."`
	Dropped  []ThoughtsGroup `json:"dropped" doc:"Not sent."`
}

// ThoughtsGroup is how many thoughts a prompt leaves out for one reason.
type ThoughtsGroup struct {
	Reason string `json:"reason" enum:"compacted,changed,other_model,unbound"` // compacted, changed, other_model or unbound
	Count  int    `json:"count" min:"1"`
	Detail string `json:"detail"` // the reason in words
}

// ContextPart is one section of the prompt.
type ContextPart struct {
	Name     string `json:"name" enum:"system,tools,summary,pinned,standing,tail,recalled,run,reserve,free"`
	Tokens   int    `json:"tokens"`
	Messages int    `json:"messages,omitempty"`
}

// TriggerStatus is how near a trigger is.
type TriggerStatus struct {
	Name      string `json:"name"` // share, messages, tokens, unsummarized …
	Value     int    `json:"value"`
	Threshold int    `json:"threshold"`
	Percent   int    `json:"percent"`
	Fires     bool   `json:"fires"`
}

// Coverage counts where the messages of the log are. Excluded are those on other
// branches, those that were deleted, the system's, and turns that a provider refused.
type Coverage struct {
	Messages   int `json:"messages"`
	Summarized int `json:"summarized"`
	Compacted  int `json:"compacted" doc:"Replaced by notes on a tool loop."`
	Verbatim   int `json:"verbatim"`
	Masked     int `json:"masked"`
	Shortened  int `json:"shortened"`
	LeftOut    int `json:"left_out"`
	Excluded   int `json:"excluded"`
	Lost       int `json:"lost" doc:"Computed, not assumed."`
}

// CalibrationView says how far the numbers can be trusted.
type CalibrationView struct {
	Measured  bool    `json:"measured"`
	Factor    float64 `json:"factor"`
	Deviation float64 `json:"deviation"` // ± share, 0.05 = ± 5 %
	Samples   int     `json:"samples"`
}

// PromptView is the exact prompt that would be sent now.
type PromptView struct {
	Model           string          `json:"model"`
	Tokens          int             `json:"tokens"`
	Note            string          `json:"note,omitempty" doc:"Why it will not be sent in this form."`
	System          []string        `json:"system"`
	SystemParts     []ContextPart   `json:"system_parts" doc:"Of each text of 'system' the section of the context report in which it counts, and its tokens."`
	Messages        []PromptMessage `json:"messages"`
	Tools           []PromptTool    `json:"tools" doc:"With which it begins."`
	MaxOutputTokens int             `json:"max_output_tokens"`
	Unchanged       *UnchangedParts `json:"unchanged,omitempty" doc:"What the last model call of the conversation was sent, too. Absent before the first one."`
}

// UnchangedParts says how much of a prompt the last model call was sent, too: parts that are equal, counted from
// the beginning. The parts are the tools (one part), the system blocks and the messages.
type UnchangedParts struct {
	RunID   RunID     `json:"run_id" doc:"The run of that call."`
	At      time.Time `json:"at" doc:"When that run was accepted."`
	Parts   int       `json:"parts"`
	OfParts int       `json:"of_parts" doc:"How many that call was sent. If all of them are unchanged, the prompt only grew at its end."`
	Tokens  int       `json:"tokens" doc:"Of the unchanged parts, in the model's own."`
}

// PromptMessage is one message of a PromptView.
type PromptMessage struct {
	MessageID      MessageID    `json:"message_id,omitempty"`
	SummaryVersion int          `json:"summary_version,omitempty" min:"1" doc:"Of notes on a tool loop, with the placement covered: they replace messages."`
	Placement      Placement    `json:"placement" enum:"covered,verbatim,masked,shortened,left_out,recalled,standing,instructions,system,excluded," doc:"recalled: the message quotes passages of the conversation that the user message asks for. standing: it lists standing instructions. instructions: it has the instructions of a run. system: it has the system prompt, or changes of the tools, from there on."`
	Section        string       `json:"section" enum:"system,tools,summary,pinned,standing,tail,recalled,run" doc:"The section of the context report in which it counts."`
	Role           Role         `json:"role"`
	Content        string       `json:"content"`
	ToolCalls      []ToolCall   `json:"tool_calls,omitempty"`
	ToolCallID     string       `json:"tool_call_id,omitempty"`
	Tokens         int          `json:"tokens"`
	AddedTools     []PromptTool `json:"added_tools,omitempty" doc:"Tools that may be called from there on, each in place of an earlier one of its name."`
	RemovedTools   []string     `json:"removed_tools,omitempty" doc:"Names of tools that may no longer be called from there on."`
	Media          []Part       `json:"media,omitempty" doc:"Images and PDFs that are sent with it as they are."`
}

// PromptTool is one tool definition of a PromptView.
type PromptTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters" doc:"A JSON schema."`
}

// SendMessage is a user's message on its way in.
type SendMessage struct {
	SessionID       SessionID
	User            string
	Edits           MessageID // the user's message that this one is a new version of; empty = none
	After           MessageID // behind which the message stands; AfterStart, or empty = the end of the path
	Content         string
	ClientMessageID string
	RequestHash     string // as Run.RequestHash
	Model           string // empty = the session's
	Multitask       Multitask
	Source          Source
	Author          string
	Metadata        json.RawMessage
	Parts           []Part      // images and files, by their BlobID; Name replaces that of the blob
	Webhook         *Webhook    // where the run's end is told; nil = where the session says
	Options         *RunOptions // what the run does otherwise than its agent; nil = nothing
	// Results are those of calls that the session's run waits for: they are recorded before the message,
	// which ends that run. Multitask, Edits and After must be empty then.
	Results []CallResult
}

// ContextTurns says where the messages of a session are in its next prompt, and how large the
// prompts of its newest turns were.
type ContextTurns struct {
	Ranges        []PlacedRange `json:"ranges"` // in the order of the log
	RangesOmitted int           `json:"ranges_omitted,omitempty" doc:"The oldest ones."`
	Turns         []ContextTurn `json:"turns"` // oldest first; an imported turn has none
	TurnsOmitted  int           `json:"turns_omitted" doc:"Runs before the first of the turns."`
}

// Limits of a ContextTurns.
const (
	MaxRanges = 1000
	MaxTurns  = 240
)

// PlacedRange is neighbors on the current path with the same place in the next prompt.
type PlacedRange struct {
	FromSeq        int64     `json:"from_seq"`
	ThroughSeq     int64     `json:"through_seq"`
	Place          Placement `json:"place" enum:"covered,verbatim,masked,shortened,left_out,excluded"`
	SummaryVersion int       `json:"summary_version,omitempty" doc:"That covers them, of the conversation or of a run (notes)."`
}

// ContextTurn is the last prompt of a run. Tokens are estimates of the model's own.
type ContextTurn struct {
	RunID          RunID          `json:"run_id"`
	Seq            int64          `json:"seq,omitempty" doc:"Of the question."`
	At             time.Time      `json:"at"` // when the question was accepted
	Used           int            `json:"used" doc:"Tokens of the last prompt, in the model's own, as all that follow."`
	Usable         int            `json:"usable" doc:"No prompt is larger."`
	Trigger        int            `json:"trigger" doc:"Over it the oldest messages are summarized; 0 = no such limit."`
	Sections       map[string]int `json:"sections" doc:"Tokens by the name of the section, as in the context report."`
	SummaryVersion int            `json:"summary_version" doc:"0 = none."`
	Summarized     bool           `json:"summarized" doc:"It is the first turn with this version."`
	Masked         bool           `json:"masked" doc:"Markers replaced old tool results."`
	Without        int            `json:"without" doc:"What the prompt would be with the covered messages in place of their summary."`
}

// RunReport is the context report of a run.
type RunReport struct {
	RunID  RunID         `gorm:"column:id"`
	Seq    int64         // of its question; 0 = it is gone
	At     time.Time     `gorm:"column:created_at"` // when it was accepted
	Report ContextReport `gorm:"column:context;serializer:json"`
}

// PlanPreview asks what the next prompt would be like under other conditions. What is
// empty is as it is.
type PlanPreview struct {
	Agent   string `json:"agent" doc:"An agent, with its prompt, tools and policy; by default the session's."`
	Model   string `json:"model" doc:"A model; by default the session's, else the agent's."`
	Policy  string `json:"policy" doc:"A preset (window, budget, sliding, ratio, off) with the global settings, without the overrides in the agent's file; by default the agent's policy."`
	Content string `json:"content" doc:"The text of the next message; up to 'limits.message_bytes' (413)."`
	Parts   []Part // the files of that message
	Tokens  int    // of that message, cl100k_base
}

// ContextPlan is what a dry run found. Nothing was changed.
type ContextPlan struct {
	Fits      bool            `json:"fits" doc:"A prompt can be sent, after a summarization if one is due."`
	Tokens    int             `json:"tokens" doc:"Of the prompt that would be sent, with the summary at its maximum length."`
	Summarize *PlannedSummary `json:"summarize,omitempty" doc:"What would be summarized; absent if nothing."`
	Activate  int             `json:"activate,omitempty" min:"1" doc:"The prepared version that would be activated first; absent if there is none."`
	Floor     *ContextFloor   `json:"floor,omitempty" doc:"Why no prompt can be sent; absent if it fits."`
	Coverage  Coverage        `json:"coverage" doc:"Of the prompt that would be sent: every message of the log, and the next one, is in exactly one of these places."`
	Context   ContextReport   `json:"context" doc:"Of the prompt before anything is summarized."`
}

// When a summary would be made.
const (
	WhenNow        = "now"        // the message waits for it
	WhenBackground = "background" // beside the answer
	WhenAfterRun   = "after_run"  // after the answer
	WhenAhead      = "ahead"      // beside the answer, and it changes no prompt before a trigger fires
)

// PlannedSummary is what a summary would cover.
type PlannedSummary struct {
	When       string    `json:"when" enum:"now,background,after_run,ahead" doc:"now: the message waits for it; ahead: in the background, and no prompt uses it before a trigger is crossed."`
	FromID     MessageID `json:"from_id"`
	FromSeq    int64     `json:"from_seq"`
	ThroughID  MessageID `json:"through_id"`
	ThroughSeq int64     `json:"through_seq"`
	Messages   int       `json:"messages"`
	Tokens     int       `json:"tokens" doc:"Of the messages and the summary that it replaces, cl100k_base."`
	MaxTokens  int       `json:"max_tokens" doc:"Of the summary, cl100k_base."`
	Trigger    string    `json:"trigger"`
}

// ContextFloor says what does not fit the window and cannot be shrunk.
type ContextFloor struct {
	Culprit string `json:"culprit" doc:"The largest part: system prompt, tool definitions, pinned messages or message."`
	Tokens  int    `json:"tokens"`
	Usable  int    `json:"usable"`
	Detail  string `json:"detail" doc:"What to do."`
}

// MessageLocation says where a message is in the next prompt of its session, and why.
type MessageLocation struct {
	MessageID      MessageID `json:"message_id"`
	Seq            int64     `json:"seq"`
	Role           Role      `json:"role"`
	Placement      Placement `json:"placement" enum:"covered,verbatim,masked,shortened,left_out,excluded" doc:"excluded: on another branch, deleted, or a system row."`
	Reason         string    `json:"reason" doc:"Why, in a sentence."`
	Note           string    `json:"note,omitempty" doc:"What happens to it before the next prompt is sent; absent if nothing does."`
	Pinned         bool      `json:"pinned"`
	TokenCount     int       `json:"token_count" doc:"In the log, cl100k_base."`
	WholeTokens    int       `json:"whole_tokens" doc:"Of the whole message in the prompt, in the model's own tokens."`
	PromptTokens   int       `json:"prompt_tokens" doc:"Of the message as sent in the prompt; 0 if it is not sent."`
	Model          string    `json:"model" doc:"The model of the prompt."`
	SummaryVersion int       `json:"summary_version,omitempty" min:"1" doc:"The active version that covers it, of the conversation or, as notes, of its run; absent if none does."`
	FirstVersion   int       `json:"first_version,omitempty" min:"1" doc:"The first version of the conversation that covered it."`
}
