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
	WindowFrom  string          `json:"window_source"` // configuration, model (by its name), default (it is not known) or provider (it refused a prompt and said so)
	Reserve     int             `json:"reserve"`       // kept for the answer
	Usable      int             `json:"usable"`        // window − reserve: no prompt is ever larger
	Trigger     int             `json:"trigger"`       // over it the oldest messages are summarized; 0 = this policy has no share trigger
	Landing     int             `json:"landing"`       // where a compaction brings the prompt to
	Used        int             `json:"used"`          // the prompt that would be sent now, as it is; one that is summarized first (see Reasons), before that
	Planned     int             `json:"planned"`       // the same with markers and the words around a summary at their largest: what triggers and usable are held against
	Free        int             `json:"free"`          // usable − used
	MaxOutput   int             `json:"max_output_tokens"`
	Sections    []ContextPart   `json:"sections"`
	Triggers    []TriggerStatus `json:"triggers"`
	WillTrigger bool            `json:"will_trigger"`         // the next message and its answer will start a summarization
	TurnsLeft   *int            `json:"turns_left,omitempty"` // that fit at the present rate before a summarization, or before the window is full; nil = not known
	Coverage    Coverage        `json:"coverage"`
	Calibration CalibrationView `json:"calibration"`
	Breaker     string          `json:"breaker"`                  // closed; open = the summary model failed too often and is not asked for a while
	OpenUntil   *time.Time      `json:"breaker_until,omitempty"`  // then it is tried again
	Failure     string          `json:"breaker_reason,omitempty"` // the last failure, also while the breaker is closed
	Summarizing bool            `json:"summarizing"`              // a summary is being made right now
	Since       *time.Time      `json:"summarizing_since,omitempty"`
	Prepared    *Summary        `json:"prepared,omitempty"`  // is ready, and changes no prompt before a trigger is crossed
	Overflows   int             `json:"overflows,omitempty"` // of a run: prompts that the provider refused as too long
	Rungs       []string        `json:"rungs"`               // what of the ladder this prompt needs; of a run, all that its prompts needed
	Reasons     []string        `json:"reasons"`             // what was decided and why, in words
	Summaries   []Summary       `json:"summaries"`

	Thoughts             *ThoughtsReport       `json:"thoughts,omitempty"`              // nil = the prompt's messages have none
	StandingInstructions []StandingInstruction `json:"standing_instructions,omitempty"` // that stand, oldest first; of many the newest

	SummaryVersion int              `json:"summary_version"`          // that the prompt uses; 0 = none
	SummaryReason  string           `json:"summary_reason,omitempty"` // why that one, and what it stands for
	Versions       []SummaryVersion `json:"versions,omitempty"`       // that can stand in a prompt, the newest ones, by what they cover
}

// ThoughtsReport says what becomes of the model's earlier thoughts in a prompt: reasoning that its
// provider signed.
type ThoughtsReport struct {
	Contract string          `json:"contract"` // free, drops or refuses: what the model does with a thought behind a changed prompt
	Kept     int             `json:"kept"`
	Dropped  []ThoughtsGroup `json:"dropped"` // not sent, by reason
}

// ThoughtsGroup is how many thoughts a prompt leaves out for one reason.
type ThoughtsGroup struct {
	Reason string `json:"reason"` // compacted, changed, other_model or unbound
	Count  int    `json:"count"`
	Detail string `json:"detail"` // the reason in words
}

// ContextPart is one section of the prompt.
type ContextPart struct {
	Name     string `json:"name"` // system, tools, summary, pinned, standing, tail, recalled, run, reserve, free
	Tokens   int    `json:"tokens"`
	Messages int    `json:"messages,omitempty"`
}

// TriggerStatus is how near a trigger is.
type TriggerStatus struct {
	Name      string `json:"name"` // share, messages, tokens, unsummarized
	Value     int    `json:"value"`
	Threshold int    `json:"threshold"`
	Percent   int    `json:"percent"`
	Fires     bool   `json:"fires"`
}

// Coverage counts where the messages of the log are. Excluded are those on other
// branches, those that were deleted, and the system's.
type Coverage struct {
	Messages   int `json:"messages"`
	Summarized int `json:"summarized"`
	Compacted  int `json:"compacted"` // told by notes on a tool loop
	Verbatim   int `json:"verbatim"`
	Masked     int `json:"masked"`
	Shortened  int `json:"shortened"`
	LeftOut    int `json:"left_out"`
	Excluded   int `json:"excluded"`
	Lost       int `json:"lost"` // always 0; shown because it is computed, not promised
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
	Note            string          `json:"note,omitempty"` // why it will not be sent as it stands; empty = it will
	System          []string        `json:"system"`
	Messages        []PromptMessage `json:"messages"`
	Tools           []PromptTool    `json:"tools"`
	MaxOutputTokens int             `json:"max_output_tokens"`
}

// PromptMessage is one message of a PromptView.
type PromptMessage struct {
	MessageID MessageID `json:"message_id,omitempty"`
	// SummaryVersion is that of notes on a tool loop, whose placement is covered: they
	// stand here for the messages.
	SummaryVersion int        `json:"summary_version,omitempty"`
	Placement      Placement  `json:"placement"`
	Role           Role       `json:"role"`
	Content        string     `json:"content"`
	ToolCalls      []ToolCall `json:"tool_calls,omitempty"`
	ToolCallID     string     `json:"tool_call_id,omitempty"`
	Tokens         int        `json:"tokens"`
	// AddedTools and RemovedTools are changes of the tools from the message on.
	AddedTools   []PromptTool `json:"added_tools,omitempty"`
	RemovedTools []string     `json:"removed_tools,omitempty"`
	Media        []Part       `json:"media,omitempty"` // images and files sent with it as they are; of the others the content has the text or a description
}

// PromptTool is one tool definition of a PromptView.
type PromptTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
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
