package core

import (
	"encoding/json"
	"iter"
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
	RoleSystem    Role = "system" // kept in the log, never sent
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
	// SourceClient is of a history that a client sent: nothing of it was said here.
	SourceClient Source = "client"
)

// FinishReason says why a model stopped.
type FinishReason string

// Why a model stops. A provider's other words are kept as they are.
const (
	FinishStop          FinishReason = "stop"
	FinishLength        FinishReason = "length" // the output limit was reached: the text is cut off
	FinishToolCalls     FinishReason = "tool_calls"
	FinishContentFilter FinishReason = "content_filter"
	// FinishContentFilter marks a user's message, too, that a filter has refused before anything was said to it: no prompt has
	// it. FinishRefused marks one that a provider has refused, perhaps in an outage, or one with half an answer: prompts have
	// it, and one that is refused or cut off again is sent again without it.
	FinishRefused FinishReason = "refused"
)

// Message is one entry of a session's log. Its content is never changed and its
// row never deleted by context management; only OnPath and Pinned move, until
// the user edits or deletes it.
type Message struct {
	ID              MessageID       `json:"id" gorm:"primaryKey;type:uuid"`
	SessionID       SessionID       `json:"session_id" gorm:"type:uuid"`
	Owner           string          `json:"-"`
	Seq             int64           `json:"seq" doc:"1, 2, 3 … in the session; 0 while queued."`
	ParentID        MessageID       `json:"parent_id,omitempty" gorm:"serializer:ref;type:uuid"`
	OnPath          bool            `json:"on_path" doc:"It is on the current path."`
	Role            Role            `json:"role"`
	Content         string          `json:"content"` // the text
	Parts           []Part          `json:"parts,omitempty" gorm:"serializer:json;type:jsonb"`
	Status          MessageStatus   `json:"status" enum:"complete,partial,failed" doc:"partial: the run was canceled; failed: a tool error."`
	ToolCalls       []ToolCall      `json:"tool_calls,omitempty" gorm:"serializer:json;type:jsonb"` // of an assistant message, in the model's order
	ToolCallID      string          `json:"tool_call_id,omitempty"`                                 // of a tool message: the call it answers
	ToolName        string          `json:"tool_name,omitempty"`
	Model           string          `json:"model,omitempty"`
	FinishReason    FinishReason    `json:"finish_reason,omitempty" doc:"stop, length, tool_calls, content_filter, or another value of the provider. Of a user's message: content_filter or refused, if the provider refused its prompt." example:"stop"`
	TokenCount      int             `json:"token_count" doc:"cl100k_base tokens."`
	Pinned          bool            `json:"pinned"`
	Source          Source          `json:"source"`
	Author          string          `json:"author,omitempty" doc:"The name for people; prompts show it where several people speak."`
	AuthorID        string          `json:"author_id,omitempty" doc:"The user who wrote it."`
	Named           bool            `json:"-"` // prompts show the author's name: AfterSpeaker
	RunID           RunID           `json:"run_id,omitempty" gorm:"serializer:ref;type:uuid"`
	ClientMessageID string          `json:"client_message_id,omitempty" gorm:"serializer:ref"`
	Metadata        json.RawMessage `json:"metadata,omitempty" schema:"Metadata" gorm:"serializer:json;type:jsonb"` // a JSON object
	CreatedAt       time.Time       `json:"created_at" gorm:"autoCreateTime:false"`
	RevisedAt       *time.Time      `json:"revised_at,omitempty" doc:"When its content was edited in place."`
	DeletedAt       *time.Time      `json:"deleted_at,omitempty" doc:"When it was deleted; its content is removed."`
	Feedback        *Feedback       `json:"feedback,omitempty" doc:"A person's feedback on the message." gorm:"serializer:json;type:jsonb"`
	Branch          *Branch         `json:"branch,omitempty" doc:"In lists, for a message with siblings." gorm:"-"`
	Revisions       []Revision      `json:"revisions,omitempty" doc:"What it said before it was edited in place, oldest first; of a single message, and in exports. The newest ones, up to 1 MiB." gorm:"-"`

	// Unloaded is how many bytes of its texts were left in storage: Content, Metadata,
	// the texts and signatures of Parts, the arguments and signatures of ToolCalls are
	// empty then. 0 = the message is whole.
	Unloaded int `json:"-" gorm:"-"`
}

// Rating is what somebody thinks of a message.
type Rating string

// The ratings.
const (
	RatingUp   Rating = "up"
	RatingDown Rating = "down"
)

// MaxFeedbackComment is how many bytes the comment of a feedback may have.
const MaxFeedbackComment = 2000

// Feedback is what a person says of a message.
type Feedback struct {
	Rating  Rating    `json:"rating"`
	Comment string    `json:"comment,omitempty"`
	At      time.Time `json:"at"`
}

// MessagePatch changes what is said about a message; its content never changes.
type MessagePatch struct {
	Metadata json.RawMessage // a JSON object; nil = it stays
	Feedback *Feedback       // nil = it stays; without a rating it is removed
}

// Limits of the revisions that a message keeps; older ones are dropped.
const (
	MaxRevisions     = 20
	MaxRevisionBytes = 1 << 20 // together; the newest one is kept in any case
)

// Revision is what a message said before it was edited in place.
type Revision struct {
	Content    string    `json:"content"`
	TokenCount int       `json:"token_count"` // of the message at that time
	ReplacedAt time.Time `json:"replaced_at"`
	MessageID  MessageID `json:"-" gorm:"primaryKey"`
	Number     int64     `json:"-" gorm:"primaryKey;autoIncrement:false"` // 1, 2, 3 …
	SessionID  SessionID `json:"-"`
	Owner      string    `json:"-"`
}

// KeptRevisions returns the newest of the revisions: as many as a message keeps.
func KeptRevisions(all []Revision) []Revision {
	kept, bytes := all[max(len(all)-MaxRevisions, 0):], 0
	for i := len(kept) - 1; i >= 0; i-- {
		if bytes += len(kept[i].Content); bytes > MaxRevisionBytes && i < len(kept)-1 {
			return kept[i+1:]
		}
	}
	return kept
}

// ReviseMessage replaces the text of a user's message in place.
type ReviseMessage struct {
	SessionID  SessionID
	MessageID  MessageID
	Content    string
	TokenCount int // of the message with the new text
}

// Part is a piece of a message that is not its plain text.
type Part struct {
	Type         string            `json:"type" enum:"text,image,file,reasoning"` // text, image, file or reasoning; in prompts compaction, too
	Text         string            `json:"text,omitempty"`
	BlobID       BlobID            `json:"blob_id,omitempty"` // of an image or a file: where its content is
	MediaType    string            `json:"media_type,omitempty"`
	Name         string            `json:"name,omitempty" doc:"Of a text: the phase of what the content has before 'offset', as the provider labels it ('commentary', 'final_answer')."`
	Size         int64             `json:"size,omitempty" doc:"Bytes."`
	Width        int               `json:"width,omitempty"` // of an image, in pixels
	Height       int               `json:"height,omitempty"`
	Pages        int               `json:"pages,omitempty" doc:"Of a document: its pages or slides, of which at most 10,000 are read and counted."`
	Blank        int               `json:"pages_without_text,omitempty" doc:"Scanned or drawn pages."`
	Extracted    bool              `json:"extracted,omitempty" doc:"Models get the text extracted from the document, except for PDFs that are sent to them as files."`
	Tokens       int               `json:"token_count,omitempty" doc:"Tokens of an image, of the text of a file, or of reasoning that is sent back."`
	Signature    string            `json:"signature,omitempty"` // of a provider's reasoning or compaction, sent back as it came
	Origin       string            `json:"origin,omitempty" doc:"Of reasoning with a signature, or of a phase: the provider and the model, which alone gets it back."`
	Offset       int               `json:"offset,omitempty" doc:"Bytes of the content before it."`
	Prefix       string            `json:"prefix,omitempty" max:"64" doc:"Of reasoning with a signature: a hash of the prompt that it was produced behind. Models that bind reasoning to it get it back only behind the same prompt."`
	Calls        int               `json:"calls,omitempty" doc:"Of reasoning, or of a phase: how many of the tool calls come before it."`
	Recalled     *RecalledPassages `json:"recalled,omitempty" doc:"Of reasoning with a prefix: the recalled passages that its prompt quoted before the message, and later prompts quote with the reasoning. Absent without any, and where the reasoning before it in the run has the same."`
	Instructions int               `json:"instructions,omitempty" doc:"Of reasoning with a prefix: tokens of the instructions of the run that its prompt had as a message of its own, and later prompts have with the reasoning. Absent without any."`
	// Setup is the hash of the system prompt and the tools with which reasoning with a prefix was
	// produced (PromptSetup), and Frozen that of those at the beginning of its prompt, if they were
	// others. Empty = they are not stored.
	Setup  string `json:"setup,omitempty" max:"64" doc:"Of reasoning with a prefix: a hash of the system prompt and the tools that it was produced with. Absent where prompts do not keep them."`
	Frozen string `json:"frozen_setup,omitempty" max:"64" doc:"Of reasoning with a setup: that of the system prompt and the tools at the beginning of its prompt. Absent if they are the same."`
}

// ToolCall is a model's wish to use a tool.
type ToolCall struct {
	ID   string `json:"id" example:"call-1"`
	Name string `json:"name" example:"calculator"`
	// Arguments is the raw text that the model wrote, normally JSON. It is never
	// parsed and written again: the bytes of the prompt must not change.
	Arguments string `json:"arguments" doc:"As the model wrote them, byte for byte; normally JSON." example:"{\"expression\": \"17 * 23\"}"`
	// Signature is what a provider wants back with the call, as it came (Gemini's
	// thought signature). Nobody but that provider's adapter looks into it.
	Signature string `json:"signature,omitempty" doc:"A provider's value that must be returned with the call."`
}

// WasRefused reports whether a provider has refused the user's message, or a filter cut off the answer.
func (m Message) WasRefused() bool {
	return m.FinishReason == FinishRefused || m.FinishReason == FinishContentFilter
}

// RefusedTurn is a message of the conversation that WasRefused, with what follows a user's one in its turn.
type RefusedTurn struct {
	Seq, Until   int64 // of the message, and before which it ends
	Role         Role
	FinishReason FinishReason
}

// WithoutRefused returns the messages with the turns as system rows, which nobody is sent, whose user's message has one of the marks.
func WithoutRefused(messages []Message, marks ...FinishReason) []Message {
	out, isOut := messages, false
	for i, m := range messages {
		if m.Role == RoleUser || i == 0 {
			mark := m.FinishReason
			if next := messages[min(i+1, len(messages)-1)].Role; mark == FinishContentFilter && (next == RoleAssistant || next == RoleTool) {
				mark = FinishRefused // something follows it
			}
			isOut = slices.Contains(marks, mark)
		}
		if isOut && &out[0] == &messages[0] {
			out = slices.Clone(out)
		}
		if isOut {
			out[i].Role = RoleSystem
		}
	}
	return out
}

// TextBytes returns how many bytes the texts of the message have, loaded or not.
func (m Message) TextBytes() int {
	n := m.Unloaded + len(m.Content) + len(m.Metadata)
	for _, p := range m.Parts {
		n += len(p.Text) + len(p.Signature)
	}
	for _, c := range m.ToolCalls {
		n += len(c.Arguments) + len(c.Signature)
	}
	return n
}

// WithoutTexts returns the message as it is when its texts are left in storage.
func (m Message) WithoutTexts() Message {
	m.Unloaded = m.TextBytes()
	m.Content, m.Metadata = "", nil
	m.Parts, m.ToolCalls = slices.Clone(m.Parts), slices.Clone(m.ToolCalls)
	for i := range m.Parts {
		m.Parts[i].Text, m.Parts[i].Signature = "", ""
	}
	for i := range m.ToolCalls {
		m.ToolCalls[i].Arguments, m.ToolCalls[i].Signature = "", ""
	}
	return m
}

// Slices returns the messages one slice after the other, with the bytes of the texts
// that each lacks: at most so many together, or one message.
func Slices(messages []Message, most int) iter.Seq2[[]Message, int] {
	return func(yield func([]Message, int) bool) {
		for from := 0; from < len(messages); {
			end, size := from+1, messages[from].Unloaded
			for ; end < len(messages) && size+messages[end].Unloaded <= most; end++ {
				size += messages[end].Unloaded
			}
			if !yield(messages[from:end], size) {
				return
			}
			from = end
		}
	}
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

// StoredRow is what a row of a message or a session counts besides its texts, in bytes.
const StoredRow = 512

// StoredBytes returns what storing the message counts.
func (m Message) StoredBytes() int64 {
	n := StoredRow + len(m.Content) + len(m.Metadata)
	for _, r := range m.Revisions {
		n += len(r.Content)
	}
	if len(m.Parts) > 0 || len(m.ToolCalls) > 0 || m.Feedback != nil { // they are stored as JSON, whose escapes count
		parts, _ := EncodeJSON(m.Parts) // texts have no error
		calls, _ := EncodeJSON(m.ToolCalls)
		feedback, _ := EncodeJSON(m.Feedback)
		n += len(parts) + len(calls) + len(feedback)
	}
	return int64(n)
}

// ManySpeakers is the Session.Speakers of a session whose further user messages carry the
// names of their speakers in prompts.
const ManySpeakers = "*"

// AfterSpeaker returns the Session.Speakers after the message, and whether the message carries
// its speaker's name in prompts: each user message does from the second speaker's first one
// on. A message without author is nobody's.
func AfterSpeaker(speakers string, m Message) (after string, named bool) {
	key := SpeakerOf(m)
	switch {
	case m.Role != RoleUser:
		return speakers, false
	case speakers == ManySpeakers:
		return ManySpeakers, true
	case key == "" || key == speakers:
		return speakers, false
	case speakers == "":
		return key, false
	}
	return ManySpeakers, true
}

// SpeakerOf distinguishes the author of the message from others; empty = unknown. It does not
// reveal who it is.
func SpeakerOf(m Message) string {
	switch {
	case m.AuthorID != "":
		return UserSpeaker(m.AuthorID)
	case m.Author != "":
		return SecretHash("name " + m.Author)
	}
	return ""
}

// UserSpeaker returns the Session.Speakers of a session in which only the user spoke.
func UserSpeaker(user string) string { return SecretHash("user " + user) }

// MessageVector is the vector of a message's text.
type MessageVector struct {
	MessageID MessageID
	SessionID SessionID
	Vector    []float32 `gorm:"column:embedding;serializer:vector"` // of length 1; nil = the model refused the text
}

// MessageVectorQuery says which vectors of a session are wanted.
type MessageVectorQuery struct {
	Space       VectorSpace
	AllBranches bool
	Before      MessageID
	SaidBefore  time.Time // only of messages before this time; zero = no bound
	Limit       int
}

// Unembedded are messages that need a vector.
type Unembedded struct {
	SessionID  SessionID
	Owner      string
	Messages   []Message
	AfterSeq   int64 // the session is embedded up to there
	ThroughSeq int64 // and with them up to there
}
