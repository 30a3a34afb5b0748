package core

// PlanPreview asks what the next prompt would be like under other conditions. What is
// empty is as it is.
type PlanPreview struct {
	Model   string `json:"model" doc:"A model; by default the session's."`
	Policy  string `json:"policy" doc:"A preset (window, budget, sliding, ratio, off) with the global settings, without the overrides in the agent's file; by default the agent's policy."`
	Content string `json:"content" doc:"The text of the next message; up to 'limits.message_bytes' (413)."`
	Tokens  int    // of that message, cl100k_base
}

// ContextPlan is what a dry run found. Nothing was changed.
type ContextPlan struct {
	Fits      bool            `json:"fits"`                // after the summary, if one is to be made
	Tokens    int             `json:"tokens"`              // of the prompt that would be sent, with the summary as long as it may be
	Summarize *PlannedSummary `json:"summarize,omitempty"` // nil = nothing would be summarized
	Activate  int             `json:"activate,omitempty"`  // version that is ready and would be put to use first; 0 = none
	Floor     *ContextFloor   `json:"floor,omitempty"`     // nil = it fits
	Context   ContextReport   `json:"context"`             // as a context report: of the prompt before anything is summarized
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
	When       string    `json:"when"`
	FromID     MessageID `json:"from_id"`
	FromSeq    int64     `json:"from_seq"`
	ThroughID  MessageID `json:"through_id"`
	ThroughSeq int64     `json:"through_seq"`
	Messages   int       `json:"messages"`
	Tokens     int       `json:"tokens"`     // of what it replaces: these messages and the summary so far, cl100k_base
	MaxTokens  int       `json:"max_tokens"` // of the summary, cl100k_base
	Trigger    string    `json:"trigger"`
}

// ContextFloor says what does not fit the window and cannot be shrunk.
type ContextFloor struct {
	Culprit string `json:"culprit"` // the largest part: system prompt, tool definitions, pinned messages or message
	Tokens  int    `json:"tokens"`
	Usable  int    `json:"usable"`
	Detail  string `json:"detail"` // a sentence that says what to do
}
