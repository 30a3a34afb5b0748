package core

import (
	"encoding/json"
	"slices"
	"time"
)

// Role says who speaks.
type Role string

// The roles of messages.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
	RoleSystem    Role = "system" // kept in the log, never sent (W14)
)

// MessageStatus says whether a message is whole.
type MessageStatus string

// The states of messages.
const (
	MessageComplete MessageStatus = "complete"
	MessagePartial  MessageStatus = "partial" // canceled while it was being written
	MessageFailed   MessageStatus = "failed"  // a tool call that ended in an error
)

// Source says through which surface a message came.
type Source string

// The surfaces.
const (
	SourceWeb   Source = "web"
	SourceSlack Source = "slack"
	SourceAPI   Source = "api"
	SourceCLI   Source = "cli"
)

// FinishReason says why a model stopped.
type FinishReason string

// Why a model stops. A provider's other words are kept as they are.
const (
	FinishStop          FinishReason = "stop"
	FinishLength        FinishReason = "length" // the output limit was reached: the text is cut off
	FinishToolCalls     FinishReason = "tool_calls"
	FinishContentFilter FinishReason = "content_filter"
)

// Message is one entry of a session's log. Its content is never changed and its
// row never deleted by context management (W10); only OnPath and Pinned move, until
// the user deletes it.
type Message struct {
	ID              MessageID       `json:"id"`
	SessionID       SessionID       `json:"session_id"`
	Owner           string          `json:"-"`
	Seq             int64           `json:"seq"` // 1, 2, 3 … in the session, without gaps
	ParentID        MessageID       `json:"parent_id,omitempty"`
	OnPath          bool            `json:"on_path"` // belongs to the branch that is current
	Role            Role            `json:"role"`
	Content         string          `json:"content"` // the text
	Parts           []Part          `json:"parts,omitempty"`
	Status          MessageStatus   `json:"status"`
	ToolCalls       []ToolCall      `json:"tool_calls,omitempty"`   // of an assistant message, in the model's order
	ToolCallID      string          `json:"tool_call_id,omitempty"` // of a tool message: the call it answers
	ToolName        string          `json:"tool_name,omitempty"`
	Model           string          `json:"model,omitempty"`
	FinishReason    FinishReason    `json:"finish_reason,omitempty"`
	TokenCount      int             `json:"token_count"` // cl100k_base tokens, overhead and tool calls included (B8)
	Pinned          bool            `json:"pinned"`
	Source          Source          `json:"source"`
	Author          string          `json:"author,omitempty"`
	RunID           RunID           `json:"run_id,omitempty"`
	ClientMessageID string          `json:"client_message_id,omitempty"`
	Metadata        json.RawMessage `json:"metadata,omitempty"` // a JSON object
	CreatedAt       time.Time       `json:"created_at"`
	DeletedAt       *time.Time      `json:"deleted_at,omitempty"` // a user's own deletion: nothing of the content is left
	Branch          *Branch         `json:"branch,omitempty"`     // in lists, of a message that has siblings
}

// Part is a piece of a message that is not its plain text.
type Part struct {
	Type      string `json:"type"` // text, image, file or reasoning
	Text      string `json:"text,omitempty"`
	BlobID    BlobID `json:"blob_id,omitempty"` // of an image or a file: where its content is
	MediaType string `json:"media_type,omitempty"`
	Name      string `json:"name,omitempty"`
	Size      int64  `json:"size,omitempty"`  // bytes of the content
	Width     int    `json:"width,omitempty"` // of an image, in pixels
	Height    int    `json:"height,omitempty"`
	Tokens    int    `json:"token_count,omitempty"` // of an image or a file, whatever the model; part of the message's
	Signature string `json:"signature,omitempty"`   // of a provider's reasoning, sent back as it came
	Origin    string `json:"origin,omitempty"`      // of reasoning with a signature: provider/model, which alone gets it back
	Offset    int    `json:"offset,omitempty"`      // of reasoning: how many bytes of the content come before it
}

// ToolCall is a model's wish to use a tool.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Arguments is the raw text that the model wrote, normally JSON. It is never
	// parsed and written again: the bytes of the prompt must not change (CONTEXT § 3, 7).
	Arguments string `json:"arguments"`
	// Signature is what a provider wants back with the call, as it came (Gemini's
	// thought signature). Nobody but that provider's adapter looks into it.
	Signature string `json:"signature,omitempty"`
}

// WithIDs returns the messages, those without an ID with a new one.
func WithIDs(messages []Message) []Message {
	messages = slices.Clone(messages)
	for i := range messages {
		if messages[i].ID == "" {
			messages[i].ID = NewID[MessageID]()
		}
	}
	return messages
}
