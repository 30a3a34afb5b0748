package ops

import (
	"encoding/json"

	"bobbin/app/core"
)

// OfUser narrows a request to one user.
type OfUser struct {
	UserID string `query:"user_id" max:"200" doc:"Only data of this user; other users' data returns 404."`
}

// User returns the user for whom the request is answered, "" = the caller; likewise of the other types
// with such a method.
func (o OfUser) User() string { return o.UserID }

// NewMemory is a memory to store.
type NewMemory struct {
	Content  string          `json:"content" schema:"MemoryContent" required:"true"`
	UserID   string          `json:"user_id" schema:"Name"`
	Metadata json.RawMessage `json:"metadata" schema:"Metadata"`
}

// User is as OfUser.User.
func (m NewMemory) User() string { return m.UserID }

// MemoryList asks for memories.
type MemoryList struct {
	OfUser
	core.PageQuery
}

// MemorySearch asks for the memories that are nearest to a text.
type MemorySearch struct {
	core.MemorySearch
	UserID string `json:"user_id" schema:"Name"`
}

// User is as OfUser.User.
func (m MemorySearch) User() string { return m.UserID }

// InMemory are the fields of operations on a memory.
type InMemory struct {
	MemoryID core.MemoryID `path:"id,memory" doc:"The memory." example:"01a1fd1c-7a10-7000-8000-000000000003"`
	OfUser
}

// MemoryEdit replaces a memory.
type MemoryEdit struct {
	InMemory
	Content  string          `json:"content" schema:"MemoryContent" required:"true"`
	Metadata json.RawMessage `json:"metadata" schema:"Metadata"`
}

// InBlob are the fields of operations on a file.
type InBlob struct {
	BlobID core.BlobID `path:"id,blob" doc:"The file." example:"01a1fd1c-7a10-7000-8000-000000000004"`
}

// NewBlobLink asks for a link.
type NewBlobLink struct {
	InBlob
	ExpiresIn int32 `json:"expires_in" min:"0" max:"3600" doc:"Seconds; 0 or omitted = 600."`
}

// NewDeletion names what is to be deleted: SessionID or UserID.
type NewDeletion struct {
	SessionID  core.SessionID `json:"session_id" doc:"The session." example:"01a1fd1b-c2ab-74fe-af4a-73c58ae3b243"`
	UserID     string         `json:"user_id" max:"200" doc:"The user." example:"ada"`
	SlackPosts bool           `json:"slack_posts" default:"false" doc:"Also delete from Slack what Bobbin posted in the threads of the deleted sessions. Otherwise it stays there."`
}

// InDeletion are the fields of operations on a deletion.
type InDeletion struct {
	DeletionID core.DeletionID `path:"id,deletion" doc:"The deletion." example:"01a1fd1c-7a10-7000-8000-00000000000a"`
}

// NewSlackThread attaches a session to a thread of Slack.
type NewSlackThread struct {
	InSession
	Team    string         `json:"team" doc:"The workspace. May be omitted with 'slack.bot_token', which is of one." example:"T012ABCDEF"`
	Channel string         `json:"channel" required:"true" example:"C012ABCDEF"`
	Thread  string         `json:"thread" required:"true" doc:"'ts' of the first message of the thread." example:"1700000000.000100"`
	Mode    core.SlackMode `json:"mode" doc:"By default 'to_slack'."`
}

// InAgent are the fields of operations on an agent.
type InAgent struct {
	Name string `path:"name" doc:"The agent's name." example:"assistant"`
}

// AgentGraph asks for the graph of an agent.
type AgentGraph struct {
	InAgent
	Format string `query:"format" enum:"json,mermaid" default:"json" doc:"The format."`
}

// UserExport asks for all data of a user.
type UserExport struct {
	UserID string `query:"user_id" max:"200" example:"ada" doc:"The user. End users may omit it: they get their own data."`
}

// OwnersExport asks for all data of a user of any owner.
type OwnersExport struct {
	Owner  string `query:"owner"`
	UserID string `query:"user_id"`
}

// SessionExport asks for a session as a file.
type SessionExport struct {
	InSession
	Format core.ExportFormat `query:"format" enum:"json,jsonl,markdown" default:"json" doc:"The format of the file."`
}

// The operator's own operations, which the document does not list. They need the token of the server's
// data folder, which the command line has.
//
//nolint:gochecknoglobals // a constant table
var (
	Purge         = describe[core.Purge, core.PurgeReport](Operation{ID: "purge", Route: "POST /internal/v1/purge"})
	ExportAnyUser = describe[OwnersExport, Nothing](Operation{ID: "exportAnyUser", Route: "GET /internal/v1/export"})
	ReloadAgents  = describe[struct{}, core.Page[core.AgentFile]](Operation{ID: "reloadAgents", Route: "POST /internal/v1/agents/reload"})
)

// The operations on everything outside sessions. The document describes those that answer with files
// by hand.
//
//nolint:gochecknoglobals // a constant table
var (
	GetSlackThread = describe[InSession, core.SlackThreadStatus](Operation{
		ID: "getSlackThread", Route: "GET /api/v1/sessions/{id}/slack", Tag: "Sessions", Scope: core.CanRead, OwnersOnly: true, Returns: "The thread",
		Summary: "Get the Slack thread of a session", Description: "Also lists the posts that are not in Slack as they should be. 404 if the session is not attached to a thread.",
	})
	PutSlackThread = describe[NewSlackThread, core.SlackThread](Operation{
		ID: "putSlackThread", Route: "PUT /api/v1/sessions/{id}/slack", Tag: "Sessions", Scope: core.CanWrite, OwnersOnly: true, Returns: "The thread",
		Summary: "Attach a session to a Slack thread", Example: `{"team": "T012ABCDEF", "channel": "C012ABCDEF", "thread": "1700000000.000100", "mode": "to_slack"}`,
		Description: "Or change the mode of its thread. The thread shows what happens from then on. 422 if Slack is off, or the app is not installed in the workspace. " +
			"409 if the thread belongs to another session, or the session to another thread.",
	})
	DeleteSlackThread = describe[InSession, Nothing](Operation{
		ID: "deleteSlackThread", Route: "DELETE /api/v1/sessions/{id}/slack", Tag: "Sessions", Scope: core.CanWrite, OwnersOnly: true, Returns: "It is attached to none",
		Summary: "Detach a session from its Slack thread", Description: "What was posted stays in Slack.",
	})
	FixSlackPost = describe[core.SlackPostFix, core.SlackThreadStatus](Operation{
		ID: "fixSlackPost", Route: "POST /api/v1/sessions/{id}/slack/posts/{item}", Tag: "Sessions", Scope: core.CanWrite, OwnersOnly: true, Returns: "The thread",
		Summary: "Send a post of a Slack thread again, look for it, or leave it", Example: `{"action": "send"}`,
		Description: "For a post that is listed in `faults`; 404 for others. 409 if it is not `unknown` and is to be looked for, or the thread is in a mode without posts. 503 if Slack does not show the thread.",
	})
	ExportSession = describe[SessionExport, Nothing](Operation{ID: "exportSession", Route: "GET /api/v1/sessions/{id}/export", Scope: core.CanRead})

	CreateDeletion = until(describe[NewDeletion, core.Deletion](Operation{
		ID: "createDeletion", Route: "POST /api/v1/deletions", Tag: "Data rights", Scope: core.CanDelete, Returns: "The deletion is complete", Accepted: "The deletion is accepted", Location: "/api/v1/deletions/",
		Summary: "Permanently delete a session or a user", Example: `{"session_id": "01a1fd1b-c2ab-74fe-af4a-73c58ae3b243"}`,
		Description: "Accepts the deletion of a session with all its data, or of all data of a user: sessions, memories, files, and the user's messages in sessions of others. It cannot be undone. " +
			"Give exactly one of `session_id` and `user_id`. Runs that have not ended are canceled first. The deletion runs in the background, survives restarts and is retried until it succeeds; " +
			"`Location` shows its progress.\n\nIt takes no `Idempotency-Key` (422) and may be repeated: the answer is the unfinished deletion of the same target, and for a session also the finished one (200). " +
			"End users can delete their own sessions and themselves.",
	}), func(d core.Deletion) bool { return d.Status == core.DeletionSucceeded })
	GetDeletion = describe[InDeletion, core.Deletion](Operation{
		ID: "getDeletion", Route: "GET /api/v1/deletions/{id}", Tag: "Data rights", Scope: core.CanDelete, Returns: "The deletion",
		Summary: "Get the progress or the report of a deletion", Description: "A completed deletion is kept for 30 days, without the name of the user.",
	})
	ExportUser = describe[UserExport, Nothing](Operation{ID: "exportUser", Route: "GET /api/v1/export", Scope: core.CanExport})

	UploadFile = describe[struct{}, core.Blob](Operation{ID: "uploadFile", Route: "POST /api/v1/blobs", Scope: core.CanWrite})
	ListFiles  = describe[core.BlobQuery, core.Page[core.Blob]](Operation{
		ID: "listFiles", Route: "GET /api/v1/blobs", Tag: "Files", Scope: core.CanRead, Returns: "A page of files",
		Summary: "List files, newest first",
	})
	GetFile    = describe[InBlob, Nothing](Operation{ID: "getFile", Route: "GET /api/v1/blobs/{id}", Scope: core.CanRead})
	DeleteFile = describe[InBlob, Nothing](Operation{
		ID: "deleteFile", Route: "DELETE /api/v1/blobs/{id}", Tag: "Files", Scope: core.CanWrite, Returns: "It is deleted",
		Summary: "Permanently delete a file", Description: "Also from messages that refer to it. They keep its name, and models are told that the file was deleted. Links to it stop working.",
	})
	DescribeFile = describe[InBlob, core.Blob](Operation{
		ID: "describeFile", Route: "GET /api/v1/blobs/{id}/info", Tag: "Files", Scope: core.CanRead, Returns: "The metadata",
		Summary: "Get the metadata of a file",
	})
	LinkFile = describe[NewBlobLink, core.BlobLink](Operation{
		ID: "linkFile", Route: "POST /api/v1/blobs/{id}/link", Tag: "Files", Scope: core.CanRead, Returns: "The link", Example: `{"expires_in": 600}`,
		Summary: "Create a temporary link for browsers", Description: "For `<img src>` and the like, which send no key. Anyone with the URL can read the file until it expires.",
	})

	Search = describe[core.SearchQuery, core.SearchPage](Operation{
		ID: "search", Route: "GET /api/v1/search", Tag: "Search", Scope: core.CanRead, Returns: "A page of hits",
		Summary: "Search messages",
		Description: "The messages that fit a question or a few words best come first: no message needs to have all words, rare words count more, in any of their forms. " +
			"`\"words in quotes\"` must be in the message and adjacent, `-word` must not occur, `begin*` matches the beginning of a word. A query without words returns 422. Deleted messages are never found. " +
			"With `sort=newest` the messages have all words as they are written, at most 500 bytes and 64 words.",
	})

	CreateMemory = describe[NewMemory, core.SavedMemory](Operation{
		ID: "createMemory", Route: "POST /api/v1/memories", Tag: "Memories", Scope: core.CanWrite, Created: true, Location: "/api/v1/memories/", Returns: "The memory",
		Summary: "Create a memory", Example: `{"content": "The inspection is on Friday.", "user_id": "carol"}`,
	})
	ListMemories = describe[MemoryList, core.Page[core.Memory]](Operation{
		ID: "listMemories", Route: "GET /api/v1/memories", Tag: "Memories", Scope: core.CanRead, Returns: "A page of memories",
		Summary: "List memories, newest first",
	})
	SearchMemories = describe[MemorySearch, core.MemoryMatches](Operation{
		ID: "searchMemories", Route: "POST /api/v1/memories/search", Tag: "Memories", Scope: core.CanRead, Returns: "The matches", CallsModel: true,
		Summary: "Search memories, most similar first", Example: `{"query": "When is the inspection?", "limit": 3}`,
	})
	ReindexMemories = describe[core.Reindex, core.Reindexed](Operation{
		ID: "reindexMemories", Route: "POST /api/v1/memories/reindex", Tag: "Memories", Scope: core.CanWrite, OwnersOnly: true, Returns: "The result of the batch", CallsModel: true,
		Summary: "Reindex a batch of stale memories", Description: "Repeat with next_cursor until it is null.",
	})
	GetMemory = describe[InMemory, core.Memory](Operation{
		ID: "getMemory", Route: "GET /api/v1/memories/{id}", Tag: "Memories", Scope: core.CanRead, Returns: "The memory",
		Summary: "Get a memory",
	})
	UpdateMemory = describe[MemoryEdit, core.SavedMemory](Operation{
		ID: "updateMemory", Route: "PUT /api/v1/memories/{id}", Tag: "Memories", Scope: core.CanWrite, Returns: "The memory",
		Summary: "Replace a memory", Description: "Replaces content and metadata; only changed content is embedded again.", Example: `{"content": "The inspection is on Monday."}`,
	})
	DeleteMemory = describe[InMemory, Nothing](Operation{
		ID: "deleteMemory", Route: "DELETE /api/v1/memories/{id}", Tag: "Memories", Scope: core.CanWrite, Returns: "It is deleted",
		Summary: "Permanently delete a memory",
	})

	GetWebhook = describe[struct{}, core.Webhook](Operation{
		ID: "getWebhook", Route: "GET /api/v1/webhook", Tag: "Runs", Scope: core.CanRead, OwnersOnly: true, Returns: "The webhook, without its secret",
		Summary: "Get the default webhook", Description: "The webhook for runs of the owner whose message and session have none; 404 if there is no default.",
	})
	PutWebhook = describe[NewWebhook, core.Webhook](Operation{
		ID: "putWebhook", Route: "PUT /api/v1/webhook", Tag: "Runs", Scope: core.CanWrite, OwnersOnly: true, Returns: "The webhook, without its secret",
		Summary: "Set the default webhook", Example: `{"url": "https://example.com/hook"}`,
	})
	DeleteWebhook = describe[struct{}, Nothing](Operation{
		ID: "deleteWebhook", Route: "DELETE /api/v1/webhook", Tag: "Runs", Scope: core.CanWrite, OwnersOnly: true, Returns: "There is none",
		Summary: "Remove the default webhook",
	})
	GetUsage = describe[core.UsageQuery, core.UsageReport](Operation{
		ID: "getUsage", Route: "GET /api/v1/usage", Tag: "Usage", Scope: core.CanRead, Returns: "A page of groups",
		Summary: "Get usage", Description: "Of all model calls, for answers, summaries and titles. Days and sessions are sorted newest first, other groups by name; the total covers all pages. By default the last 30 days.",
	})
	ListAgents = describe[struct{}, core.Page[core.AgentDetail]](Operation{
		ID: "listAgents", Route: "GET /api/v1/agents", Tag: "Agents", Scope: core.CanRead, Returns: "All agents, on one page",
		Summary: "List agents",
	})
	GetAgent = describe[InAgent, core.AgentDetail](Operation{
		ID: "getAgent", Route: "GET /api/v1/agents/{name}", Tag: "Agents", Scope: core.CanRead, Returns: "The agent",
		Summary: "Get an agent",
	})
	GetAgentGraph = describe[AgentGraph, core.GraphView](Operation{ID: "getAgentGraph", Route: "GET /api/v1/agents/{name}/graph", Scope: core.CanRead})
)
