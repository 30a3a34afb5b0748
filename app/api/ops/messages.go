package ops

import (
	"encoding/json"
	"time"

	"bobbin/app/core"
)

// InMessage are the fields of operations on a message.
type InMessage struct {
	InSession
	MessageID core.MessageID `path:"mid,message" doc:"The message." example:"01a1fd1c-7a10-7000-8000-000000000001"`
}

// MessageList asks for messages of a session.
type MessageList struct {
	InSession
	core.MessageQuery
}

// MessagePage is a page of messages, with the queued ones.
type MessagePage struct {
	core.Page[core.Message]
	Pending     []core.Message `json:"pending" doc:"Queued messages: the first ones, up to 1 MiB."`
	LastEventID int64          `json:"last_event_id" doc:"Start with the events after it to miss nothing."`
}

// NewMessage is a message that is sent, or only appended to the log. The tag run says with which value of
// it a field is allowed; those with edit:"run" do not change in an edit without a run.
type NewMessage struct {
	InSession
	Content         string           `json:"content" max:"1048576" doc:"The text; required unless there are files, or tool calls."`
	ClientMessageID string           `json:"client_message_id" schema:"Name" doc:"Makes retries safe."`
	Model           string           `json:"model" run:"true"`
	Multitask       core.Multitask   `json:"multitask" run:"true"`
	UserID          string           `json:"user_id" schema:"Name" run:"true"`
	Author          string           `json:"author" schema:"Name" edit:"run"`
	Source          core.Source      `json:"source" edit:"run" doc:"slack only with run=false."`
	Metadata        json.RawMessage  `json:"metadata" schema:"Metadata" edit:"run"`
	Parts           []FilePart       `json:"parts" run:"true" doc:"Files that were uploaded; 10 at most ('files.per_message')."`
	Webhook         *NewWebhook      `json:"webhook" run:"true"`
	Options         *core.RunOptions `json:"options" run:"true"`
	After           core.MessageID   `json:"after" schema:"After" run:"true"`

	Run        *bool           `json:"run" default:"true" doc:"false: append the message to the log without a run. The following fields require it."`
	Role       core.Role       `json:"role" run:"false" edit:"run"`
	ToolCalls  []core.ToolCall `json:"tool_calls" run:"false" edit:"run" max:"128"`
	ToolCallID string          `json:"tool_call_id" run:"false" edit:"run" doc:"Of a tool message: the call that it answers."`
	ToolName   string          `json:"tool_name" run:"false" edit:"run"`
	CreatedAt  *time.Time      `json:"created_at" run:"false" edit:"run" doc:"Not in the future."`
	AuthorID   string          `json:"author_id" schema:"Name" run:"false" doc:"The user who wrote it; with a run this is 'user_id'."`
}

// EditedMessage is a new version of a message.
type EditedMessage struct {
	NewMessage
	MessageID core.MessageID `path:"mid,message" doc:"The message." example:"01a1fd1c-7a10-7000-8000-000000000001"`
}

// FilePart is an image or a file of a message in a request.
type FilePart struct {
	Type   string      `json:"type,omitempty" enum:"image,file" doc:"Optional; follows from the file."`
	BlobID core.BlobID `json:"blob_id" doc:"An uploaded file."`
	Name   string      `json:"name,omitempty" doc:"Overrides the name of the file."`
}

// RunAnswer is the answer to a message.
type RunAnswer struct {
	Run     core.Run      `json:"run"` // not ended if the server's time limit passed
	Message *core.Message `json:"message,omitempty" doc:"The answer; absent if the run has none."`
}

// Pinned says whether a message is pinned.
type Pinned struct {
	InMessage
	Pinned *bool `json:"pinned" required:"true"`
}

// MessageMetadata is the metadata of a message.
type MessageMetadata struct {
	InMessage
	Metadata json.RawMessage `json:"metadata" schema:"Metadata" required:"true"`
}

// MessageFeedback is a person's feedback on a message.
type MessageFeedback struct {
	InMessage
	Rating  core.Rating `json:"rating" required:"true"`
	Comment string      `json:"comment" max:"2000"`
}

// The operations on messages and branches. The document describes those that start runs by hand:
// their answers are streams as well.
//
//nolint:gochecknoglobals // a constant table
var (
	SendMessage = describe[NewMessage, RunAnswer](Operation{
		ID: "sendMessage", Route: "POST /api/v1/sessions/{id}/messages", Scope: core.CanWrite, Example: `{"content": "What is 17 * 23?", "client_message_id": "first"}`,
	})
	EditMessage = describe[EditedMessage, RunAnswer](Operation{
		ID: "editMessage", Route: "PATCH /api/v1/sessions/{id}/messages/{mid}", Scope: core.CanWrite, Example: `{"content": "What is 17 * 32?"}`,
	})
	RegenerateMessage = describe[core.Regenerate, RunAnswer](Operation{
		ID: "regenerateMessage", Route: "POST /api/v1/sessions/{id}/messages/{mid}/regenerate", Scope: core.CanWrite, Example: `{"model": "demo"}`,
	})
	ListMessages = describe[MessageList, MessagePage](Operation{
		ID: "listMessages", Route: "GET /api/v1/sessions/{id}/messages", Tag: "Messages", Scope: core.CanRead, Returns: "A page of messages, and the queued ones",
		Summary: "List messages", Description: "In the order of seq, including summarized messages. Only the current path, unless all_branches is set.",
	})
	GetMessage = describe[InMessage, core.Message](Operation{
		ID: "getMessage", Route: "GET /api/v1/sessions/{id}/messages/{mid}", Tag: "Messages", Scope: core.CanRead, Returns: "The message",
		Summary: "Get a message", Description: "On any branch, with its revisions. Deleted and queued messages return 404.",
	})
	DeleteMessage = describe[InMessage, Nothing](Operation{
		ID: "deleteMessage", Route: "DELETE /api/v1/sessions/{id}/messages/{mid}", Tag: "Branches", Scope: core.CanWrite, Returns: "The message is deleted",
		Summary: "Permanently delete a message", Description: "Its row stays, so that seq has no gaps, but its content is removed from the log, the run, search, stored answers and summaries. " +
			"A tool call is deleted with its results. May be repeated. 409 while the session has a run.",
	})
	SelectMessage = describe[InMessage, core.Session](Operation{
		ID: "selectMessage", Route: "POST /api/v1/sessions/{id}/messages/{mid}/select", Tag: "Branches", Scope: core.CanWrite, Returns: "The session",
		Summary:     "Make the branch through a message the current path",
		Description: "The path ends at the newest message after it. A message on the current path changes nothing. 409 while the session has a run.",
	})
	PinMessage = describe[Pinned, core.Message](Operation{
		ID: "pinMessage", Route: "PUT /api/v1/sessions/{id}/messages/{mid}/pin", Tag: "Branches", Scope: core.CanWrite, Returns: "The message", Example: `{"pinned": true}`,
		Summary: "Pin a message", Description: "A pinned message is in every prompt, even when it is summarized. 422 `context_floor` if the pinned messages would leave no room in prompts.",
	})
	UnpinMessage = describe[InMessage, Nothing](Operation{
		ID: "unpinMessage", Route: "DELETE /api/v1/sessions/{id}/messages/{mid}/pin", Tag: "Branches", Scope: core.CanWrite, Returns: "The message is not pinned",
		Summary: "Unpin a message",
	})
	PutMessageMetadata = describe[MessageMetadata, core.Message](Operation{
		ID: "putMessageMetadata", Route: "PUT /api/v1/sessions/{id}/messages/{mid}/metadata", Tag: "Messages", Scope: core.CanWrite, Returns: "The message",
		Summary: "Replace the metadata of a message", Description: "Starts no run and no branch. The members `excerpt` and `replaced_characters` are reserved and do not change.",
		Example: `{"metadata": {"label": "important"}}`,
	})
	PutFeedback = describe[MessageFeedback, core.Message](Operation{
		ID: "putFeedback", Route: "PUT /api/v1/sessions/{id}/messages/{mid}/feedback", Tag: "Messages", Scope: core.CanWrite, Returns: "The message",
		Summary: "Rate a message", Example: `{"rating": "down", "comment": "The date is wrong."}`,
		Description: "Replaces the feedback on the message. It is part of the message, its exports and `message.updated`, but of no prompt, and is deleted with the message.",
	})
	DeleteFeedback = describe[InMessage, Nothing](Operation{
		ID: "deleteFeedback", Route: "DELETE /api/v1/sessions/{id}/messages/{mid}/feedback", Tag: "Messages", Scope: core.CanWrite, Returns: "There is none",
		Summary: "Remove the feedback on a message",
	})
	ImportMessages = describe[Import, core.Imported](Operation{
		ID: "importMessages", Route: "POST /api/v1/sessions/{id}/messages/import", Scope: core.CanWrite,
	})
)

// Import are the parameters of an import; the history is the body.
type Import struct {
	InSession
	Source core.Source `query:"source" enum:"api,web,cli" default:"api" doc:"For messages without a source."`
}
