package core

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
