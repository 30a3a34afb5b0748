package core

// MessageLocation says where a message is in the next prompt of its session, and why.
type MessageLocation struct {
	MessageID    MessageID `json:"message_id"`
	Seq          int64     `json:"seq"`
	Role         Role      `json:"role"`
	Placement    Placement `json:"placement"`
	Reason       string    `json:"reason"`         // a sentence
	Note         string    `json:"note,omitempty"` // what the next message changes about it; empty = nothing
	Pinned       bool      `json:"pinned"`
	TokenCount   int       `json:"token_count"`   // in the log, cl100k_base
	WholeTokens  int       `json:"whole_tokens"`  // that it would have in the prompt as it is, in the model's own
	PromptTokens int       `json:"prompt_tokens"` // that it has in the prompt; 0 = it is not sent
	Model        string    `json:"model"`         // of the prompt
	// SummaryVersion is the version in use that covers the message, of the conversation
	// or of a run (notes); FirstVersion that of the conversation that covered it first.
	// 0 = none does.
	SummaryVersion int `json:"summary_version,omitempty"`
	FirstVersion   int `json:"first_version,omitempty"`
}
