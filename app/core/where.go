package core

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
