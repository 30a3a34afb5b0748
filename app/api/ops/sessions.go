package ops

import (
	"encoding/json"

	"bobbin/app/core"
)

// InSession are the fields of operations on a session.
type InSession struct {
	SessionID core.SessionID `path:"id,session" doc:"The session." example:"01a1fd1b-c2ab-74fe-af4a-73c58ae3b243"`
}

// NewSession is a session to create.
type NewSession struct {
	Agent        string          `json:"agent" doc:"Empty = the default agent."`
	Model        string          `json:"model" doc:"Overrides the agent's model; empty = the agent's."`
	Title        string          `json:"title" max:"500"`
	Timezone     string          `json:"timezone" doc:"An IANA name; empty = UTC." example:"Europe/Vienna"`
	Instructions string          `json:"instructions" max:"16384" doc:"Added to the system prompt."`
	Metadata     json.RawMessage `json:"metadata" schema:"Metadata"`
	UserID       string          `json:"user_id" schema:"Name"`
	Pinned       bool            `json:"pinned" default:"false"`
	Tags         []string        `json:"tags" schema:"Tags"`
	Webhook      *NewWebhook     `json:"webhook"`
	Source       core.Source     `json:"source" enum:"api,web,cli" default:"api"`
	Temporary    bool            `json:"temporary" default:"false" doc:"For calls that nobody comes back to: in no list and no search, without a title and summaries, and permanently removed a day after its last activity."`
}

// SessionPatch changes a session.
type SessionPatch struct {
	InSession
	core.SessionPatch
	Webhook *NewWebhook `json:"webhook" doc:"An empty url removes it."`
}

// NewWebhook is where the ends of runs are reported.
type NewWebhook struct {
	URL    string `json:"url,omitempty" max:"2048" doc:"An https URL on the public internet." example:"https://example.com/hook"`
	Secret string `json:"secret,omitempty" doc:"Signs deliveries: 'whsec_' and the base64 of 24 to 64 random bytes. Write-only. By default the setting 'webhooks.secret'."`
}

// ToCore returns the webhook as a core.Webhook; nil stays nil.
func (w *NewWebhook) ToCore() *core.Webhook {
	if w == nil {
		return nil
	}
	return &core.Webhook{URL: core.Target(w.URL), Secret: w.Secret}
}

// The operations on sessions.
//
//nolint:gochecknoglobals // a constant table
var (
	CreateSession = describe[NewSession, core.Session](Operation{
		ID: "createSession", Route: "POST /api/v1/sessions", Tag: "Sessions", Scope: core.CanWrite, Created: true, Location: "/api/v1/sessions/",
		Summary: "Create a session", Description: "All fields are optional.", Returns: "The session",
		Example: `{"agent": "assistant", "title": "Pumps", "timezone": "Europe/Vienna"}`,
	})
	ListSessions = describe[core.SessionQuery, core.Page[core.Session]](Operation{
		ID: "listSessions", Route: "GET /api/v1/sessions", Tag: "Sessions", Scope: core.CanRead,
		Summary: "List sessions", Returns: "A page of sessions",
	})
	GetSession = describe[InSession, core.SessionDetail](Operation{
		ID: "getSession", Route: "GET /api/v1/sessions/{id}", Tag: "Sessions", Scope: core.CanRead,
		Summary: "Get a session with its usage", Returns: "The session",
	})
	UpdateSession = describe[SessionPatch, core.Session](Operation{
		ID: "updateSession", Route: "PATCH /api/v1/sessions/{id}", Tag: "Sessions", Scope: core.CanWrite,
		Summary: "Update a session", Description: "Only the given fields are changed. Runs that have started are not affected.", Returns: "The session",
		Example: `{"title": "Pumps of hall three"}`,
	})
	ArchiveSession = describe[InSession, Nothing](Operation{
		ID: "archiveSession", Route: "DELETE /api/v1/sessions/{id}", Tag: "Sessions", Scope: core.CanWrite, Returns: "The session is archived",
		Summary:     "Archive a session",
		Description: "An archived session is hidden from lists and accepts no more messages; nothing is deleted. May be repeated. `POST /api/v1/deletions` deletes it permanently.",
	})
	ForkSession = describe[core.ForkSession, core.Session](Operation{
		ID: "forkSession", Route: "POST /api/v1/sessions/{id}/fork", Tag: "Branches", Scope: core.CanWrite, Created: true, Location: "/api/v1/sessions/", Returns: "The copy",
		Summary:     "Copy a session up to a message",
		Description: "A tool call is copied with its results. The summary that is valid at the message is copied, runs and events are not.",
	})
)
