package openai

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
)

// caller is who makes a request, and for which session.
type caller struct {
	tenant  core.Tenant
	user    string // of the caller's users; empty = none named
	session string // the name or the id of the session; empty = none
	ours    bool   // session may be an id of Bobbin: clients made up all others
}

// readCaller returns who makes the request. Headers are what chat pages can be configured to
// send, metadata what programs send.
func readCaller(c *gin.Context, metadata map[string]string, user string) (caller, error) {
	id, _ := core.IdentityFrom(c.Request.Context())
	who := caller{tenant: id.Tenant()}
	who.user = cmp.Or(metadata["user_id"], c.GetHeader("X-OpenWebUI-User-Id"), user)
	if id.User != "" {
		who.user = id.User
	}
	who.session = cmp.Or(metadata["session_id"], c.GetHeader("X-Session-Id"))
	// Bobbin's ids are UUIDs of version 7, those of clients of version 4.
	who.ours = core.ValidID(who.session) && who.session[14] == '7'
	// Open WebUI names temporary chats by the browser's connection, and a LibreChat that does not
	// know its placeholder sends it as it is: different chats have such a name in common.
	libreChat, openWebUI := c.GetHeader("X-Conversation-Id"), c.GetHeader("X-OpenWebUI-Chat-Id")
	if strings.HasPrefix(libreChat, "{{") {
		libreChat = ""
	}
	if openWebUI == "local" || strings.HasPrefix(openWebUI, "local:") {
		openWebUI = ""
	}
	who.session = cmp.Or(who.session, libreChat, openWebUI)
	for field, value := range map[string]string{"session_id": who.session, "user": who.user} {
		if len(value) > maxName || core.CleanText(value) != value || strings.ContainsFunc(value, unicode.IsControl) {
			return who, core.OneFault(field, "must be at most %d bytes, without control characters", maxName)
		}
	}
	return who, nil
}

// findSession returns a session of the caller. An archived one is deleted for clients of this API.
func (a *API) findSession(ctx context.Context, tenant core.Tenant, id core.SessionID) (core.Session, error) {
	session, err := a.Sessions.Get(ctx, tenant, id)
	if err == nil && session.ArchivedAt != nil {
		err = core.Errorf(core.ErrNotFound, "session %s does not exist", id)
	}
	return session, err
}

// keepSession makes the session of a stored response one that is listed and kept: something refers to
// it. Other temporary sessions stay what they are.
func (a *API) keepSession(ctx context.Context, tenant core.Tenant, session core.Session) (core.Session, error) {
	if !session.Temporary {
		return session, nil
	}
	newest, err := a.Runs.List(ctx, tenant, session.ID, core.PageQuery{Limit: 1})
	if err != nil || len(newest.Items) == 0 || !isStored(newest.Items[0]) {
		return session, err
	}
	return a.Chat.UpdateSession(core.WithoutKeyedWork(ctx), tenant, session.ID, core.SessionPatch{Keep: true})
}

// openSession returns the session that the caller names, created if it does not exist. If it names
// none, it is a new temporary one.
func (a *API) openSession(ctx context.Context, r request) (core.Session, error) {
	fresh := core.Session{Agent: r.agent.Name, UserID: r.user, Source: core.SourceAPI}
	switch {
	case r.ours:
		session, err := a.findSession(ctx, r.tenant, core.SessionID(r.session))
		if err != nil || r.body.response == nil {
			return session, err
		}
		return a.keepSession(ctx, r.tenant, session)
	case r.session != "":
		return a.Chat.OpenSession(ctx, r.tenant, aliasOf(r.tenant, "name:"+r.session), fresh)
	}
	fresh.Temporary = true
	if r.key == "" {
		return a.Chat.CreateSession(ctx, r.tenant, fresh)
	}
	// A repetition finds the run of the first time.
	return a.Chat.OpenSession(ctx, r.tenant, aliasOf(r.tenant, "idempotency-key:"+r.key), fresh)
}

// aliasOf returns a name of this API as it is stored. End users have names of their own; the length
// keeps those of one apart from those of others, whatever they are.
func aliasOf(tenant core.Tenant, name string) core.Alias {
	if tenant.User != "" {
		name = fmt.Sprintf("user/%d/%s/%s", utf8.RuneCountInString(tenant.User), tenant.User, name)
	}
	return core.Alias{Surface: core.SourceAPI, Name: name}
}

// maxCancelWait bounds the wait for a run whose client has closed its connection.
const maxCancelWait = 10 * time.Second

// awaitCanceled returns a run, if it was canceled after its end: its answer so far belongs to the history
// that the client sends.
func (a *API) awaitCanceled(ctx context.Context, who caller, id core.RunID) (core.Run, error) {
	run, err := a.Runs.Get(ctx, who.tenant, id)
	if err != nil || !run.CancelRequested || run.Status.Ended() {
		return run, err
	}
	ctx, cancel := context.WithTimeout(ctx, maxCancelWait)
	defer cancel()
	out, err := a.Chat.Wait(ctx, who.tenant, run)
	return out.Run, err
}

// Limits of the part of a log that a history is compared with.
const (
	maxLogMessages = 20_000
	maxLogBytes    = 64 << 20
	partBytes      = 256 // memory of a file's description
	entryBytes     = 256 // memory of a message besides its text, and of its places in the tree
)

// loadLog returns the session's log, of a longer one the newest messages. What it has in memory
// is reserved for the request.
func (a *API) loadLog(c *gin.Context, who caller, id core.SessionID) (logTree, error) {
	var log []logMessage
	size := 0
	q := core.MessageQuery{AllBranches: true, Descending: true, PageQuery: core.PageQuery{Limit: core.MaxPageLimit}}
	for {
		page, err := a.Messages.List(c.Request.Context(), who.tenant, id, q)
		if err != nil {
			return logTree{}, err
		}
		read := 0
		for _, m := range page.Items {
			kept := newLogMessage(m)
			read += len(m.Content) + entryBytes + partBytes*len(kept.parts)
			log = append(log, kept)
		}
		if err := handlers.HoldOf(c).Grow(int64(read)); err != nil {
			return logTree{}, err
		}
		size += read
		truncated := page.NextCursor != nil && (len(log) >= maxLogMessages || size >= maxLogBytes)
		if page.NextCursor == nil || truncated {
			slices.Reverse(log)
			tree := newLogTree(log)
			tree.truncated = truncated
			return tree, nil
		}
		q.Cursor = *page.NextCursor
	}
}

// callPrefix begins the ids of tool calls as clients see them.
const callPrefix = "call_"

// callID returns the id of a tool call for the client. It names the run, so that the result
// finds it although the client names no session. Calls of no run are the client's own.
func callID(run core.RunID, id string) string {
	if run == "" {
		return id
	}
	return callPrefix + strings.ReplaceAll(string(run), "-", "") + "_" + id
}

// parseCallID returns the run and the id of the call within it.
func parseCallID(outer string) (run core.RunID, id string, ok bool) {
	hexed, id, ok := strings.Cut(strings.TrimPrefix(outer, callPrefix), "_")
	if _, err := hex.DecodeString(hexed); err != nil || len(hexed) != 32 || !ok {
		return "", "", false
	}
	run = core.RunID(strings.Join([]string{hexed[:8], hexed[8:12], hexed[12:16], hexed[16:20], hexed[20:]}, "-"))
	return run, id, core.ValidID(run)
}

// appendMessages stores messages of the client without an answer.
func (a *API) appendMessages(ctx context.Context, who caller, in core.AppendMessages, messages []message) (last int64, err error) {
	return a.Transfer.AppendHistory(ctx, who.tenant, in, func(yield func(core.Message) bool) {
		for _, m := range messages {
			if !yield(m.toCore(who.user)) {
				return
			}
		}
	})
}

// toCore returns the message as the log has it.
func (m message) toCore(user string) core.Message {
	stored := core.Message{Role: core.Role(m.Role), Content: m.Content.text, Source: core.SourceClient, ToolCallID: m.ToolCallID}
	if m.Role == "user" {
		stored.Author, stored.AuthorID = m.Name, user
	}
	stored.Content += strings.Repeat("\n[an image or a file of the client that was not kept]", len(m.Content.files))
	for _, call := range m.ToolCalls {
		stored.ToolCalls = append(stored.ToolCalls, core.ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
	}
	return stored
}
