package e2e_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
	"bobbin/tests/seed"
)

// purging is a house with a user who is to go, one who stays, and a session that
// both wrote in.
type purging struct {
	*apptest.Disk

	north  *client.Client
	user   string
	own    core.Session // the user's
	bobs   core.Session
	shared core.Session // Bob's, in which the user wrote
}

const bobsWord = "hedgehog"

func newPurging(t *testing.T, url string) *purging {
	t.Helper()
	model := apptest.NewProvider(t, provider.Options{})
	h := apptest.New(t, url, apptest.WithModel("echo", 128_000, 1024, model), func(c *config.Config) { // so large that no summary is made beside the test
		c.Auth.Keys = []config.APIKey{{Name: "north", Secret: config.NewSecret("n")}, {Name: "south", Secret: config.NewSecret("s")}}
	})
	p := &purging{Disk: apptest.NewDisk(t, h, url), north: h.NewClient("n")}
	p.user = p.Marks.Of("user_id")
	p.fill()
	p.plant()
	return p
}

func object(key, value string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{%q: %q}`, key, value))
}

// fill makes what can be made over HTTP.
func (p *purging) fill() {
	t, m := p.T, &p.Marks
	t.Helper()
	p.own = must.Get(client.Call(t.Context(), p.north, ops.CreateSession, ops.NewSession{UserID: p.user, Title: "about " + m.Of("title"), Instructions: m.Of("instructions"), Metadata: object("k", m.Of("session metadata"))}))(t)
	p.bobs = must.Get(client.Call(t.Context(), p.north, ops.CreateSession, ops.NewSession{UserID: "bob", Title: "Bob's " + bobsWord}))(t)
	p.shared = must.Get(client.Call(t.Context(), p.north, ops.CreateSession, ops.NewSession{UserID: "bob", Title: "the team"}))(t)
	// Incompressible, so that it is found where PostgreSQL keeps what is long.
	noise, random := make([]byte, 20_000), seed.Fixed(1, 1)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	for _, send := range []core.SendMessage{
		{SessionID: p.own.ID, Content: "my secret is " + m.Of("message"), User: p.user, Author: m.Of("author"), Metadata: object("k", m.Of("message metadata")), ClientMessageID: m.Of("client_message_id")},
		{SessionID: p.own.ID, Content: "a tool for " + m.Of("tool question"), User: p.user},
		{SessionID: p.own.ID, Content: m.Of("long message") + hex.EncodeToString(noise), User: p.user},
		{SessionID: p.own.ID, Content: "one more, to be summarized", User: p.user},
		{SessionID: p.own.ID, Content: "at first " + m.Of("revision"), User: p.user, ClientMessageID: "revised"},
		{SessionID: p.bobs.ID, Content: "Bob likes the " + bobsWord, User: "bob"},
		{SessionID: p.shared.ID, Content: "Bob asks the team", User: "bob", Author: "bob"},
		{SessionID: p.shared.ID, Content: "at first " + m.Of("revision in a shared session"), User: p.user, ClientMessageID: "revised"},
		{SessionID: p.shared.ID, Content: "I answer " + m.Of("message in a shared session"), User: p.user, Author: m.Of("author in a shared session"), Metadata: object("k", m.Of("metadata in a shared session")), ClientMessageID: m.Of("client_message_id in a shared session")},
		{SessionID: p.shared.ID, Content: "a tool " + m.Of("tool question in a shared session"), User: p.user},
		{SessionID: p.shared.ID, Content: "Bob closes", User: "bob", Author: "bob"},
	} {
		answer := must.Get(apptest.SendAndWait(t.Context(), p.north, send))(t)
		if answer.Run.Status != core.RunSucceeded {
			t.Fatalf("run: %+v", answer.Run)
		}
		if send.ClientMessageID == "revised" {
			must.Get(client.Call(t.Context(), p.north, ops.EditMessage, ops.EditedMessage{NewMessage: ops.NewMessage{InSession: ops.InSession{SessionID: send.SessionID}, Content: "then something else", Run: new(false)}, MessageID: answer.Run.UserMessageID}))(t)
		}
	}
	must.Get(client.Call(t.Context(), p.north, ops.CreateMemory, ops.NewMemory{UserID: p.user, Content: "remembers " + m.Of("memory"), Metadata: object("k", m.Of("memory metadata"))}))(t)
	must.Get(client.Call(t.Context(), p.north, ops.CreateMemory, ops.NewMemory{UserID: "bob", Content: "Bob remembers the " + bobsWord}))(t)
	title := "later " + m.Of("title in an event")
	must.Get(client.Call(t.Context(), p.north, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: p.own.ID}, SessionPatch: core.SessionPatch{Title: &title}}))(t)
}

// plant puts marks where only accidents put texts.
func (p *purging) plant() {
	m, own := &p.Marks, p.own.ID
	quoted := func(place string) string { return fmt.Sprintf("%q", m.Of(place)) }
	p.Exec("UPDATE sessions SET conversation_summary = ?, summary_version = 1, summary_count = 1 WHERE id = ?", "They spoke of "+m.Of("summary of the session"), own)
	p.Exec("INSERT INTO session_summaries (id, session_id, owner, version, kind, state, content, focus, note, created_at) VALUES (?, ?, 'north', 99, 'rolling', 'dropped', ?, ?, ?, ?)",
		core.NewID[string](), own, m.Of("summary"), m.Of("focus"), m.Of("note"), core.Now())
	p.Exec("UPDATE sessions SET prompt_state = ? WHERE id = ?", `{"x": `+quoted("prompt state")+`}`, own)
	p.Exec("UPDATE messages SET tool_calls = ?, parts = ?, tool_name = ? WHERE session_id = ? AND seq = 2",
		`[{"id": "c", "name": "x", "arguments": `+quoted("tool arguments")+`}]`, `[{"type": "text", "text": `+quoted("parts")+`}]`, m.Of("tool name"), own)
	p.Exec("UPDATE runs SET partial = ?, error = ?, state = ?, context = ? WHERE session_id = ?",
		m.Of("partial"), `{"code": "model_error", "message": `+quoted("run error")+`}`, `{"x": `+quoted("run state")+`}`, `{"x": `+quoted("run context")+`}`, own)
	p.Exec("UPDATE runs SET partial = ?, error = ?, state = ?, context = ? WHERE session_id = ? AND user_id = ?",
		m.Of("partial, shared"), `{"code": "model_error", "message": `+quoted("run error, shared")+`}`, `{"x": `+quoted("run state, shared")+`}`, `{"x": `+quoted("run context, shared")+`}`, p.shared.ID, p.user)
	p.blob("blob", p.user, own)
	p.blob("blob in a shared session", p.user, p.shared.ID)
	p.blob("", "bob", p.bobs.ID)
	p.Exec("INSERT INTO idempotency_keys (owner, key, target, request_hash, status, body, created_at, expires_at) VALUES ('north', ?, ?, 'h', 200, ?, ?, ?)",
		m.Of("idempotency key"), "POST /api/v1/sessions/"+string(own)+"/messages", []byte(`{"message": `+quoted("idempotency answer")+`}`), core.Now(), core.Now())
	p.Exec("INSERT INTO idempotency_keys (owner, key, target, request_hash, status, body, created_at, expires_at) VALUES ('north', 'by user', 'POST /api/v1/memories', 'h', 201, ?, ?, ?)",
		[]byte(`{"user_id":"`+p.user+`","content": `+quoted("idempotency answer by user")+`}`), core.Now(), core.Now())
	p.Exec("INSERT INTO idempotency_keys (owner, key, target, request_hash, status, body, created_at, expires_at) VALUES ('north', ?, ?, 'h', 200, ?, ?, ?)",
		"bobs "+string(p.bobs.ID), "POST /api/v1/sessions/"+string(p.bobs.ID)+"/messages", []byte(`{"user_id":"bob"}`), core.Now(), core.Now().Add(time.Hour))
	p.Exec("INSERT INTO idempotency_mentions (owner, key, mention) VALUES ('north', ?, ?), ('north', 'by user', ?), ('north', ?, ?)",
		m.Of("idempotency key"), string(own), "user "+p.user, "bobs "+string(p.bobs.ID), string(p.bobs.ID))
	// What the planner of PostgreSQL keeps samples of, and what makes SQLite's pages move.
	if p.Database.Dialect() == "postgres" {
		p.Exec("ANALYZE")
		p.Exec("CHECKPOINT")
	}
}

// blob stores a file with a mark and refers to it from the session's newest message
// of the user.
func (p *purging) blob(place, user string, session core.SessionID) {
	p.T.Helper()
	name, data := "hedgehog.txt", "a picture of a "+bobsWord+" for "+string(session)
	if place != "" {
		name, data = p.Marks.Of(place+" name"), "the file: "+p.Marks.Of(place)
	}
	id, hash := core.NewID[string](), fmt.Sprintf("%x", sha256.Sum256([]byte(data)))
	p.Exec("INSERT INTO blob_contents (owner, sha256, size, created_at, data) VALUES ('north', ?, ?, ?, ?)", hash, len(data), core.Now(), []byte(data))
	p.Exec("INSERT INTO blobs (id, owner, user_id, session_id, sha256, media_type, name, size, created_at, uploaded_at) VALUES (?, 'north', ?, ?, ?, 'text/plain', ?, ?, ?, ?)",
		id, user, session, hash, name, len(data), core.Now(), core.Now())
	var message string
	p.ReadRow(&message, "SELECT user_message_id FROM runs WHERE session_id = ? AND user_id = ? ORDER BY queue_seq DESC LIMIT 1", session, user)
	p.Exec("INSERT INTO blob_references (message_id, blob_id, session_id, owner) VALUES (?, ?, ?, 'north')", message, id, session)
}

// rest is everything of Bob's that must not change.
func (p *purging) rest() map[string]string {
	t := p.T
	t.Helper()
	out := map[string]string{}
	add := func(name string, v any, err error) {
		raw, encodeErr := json.MarshalIndent(v, "", " ")
		if err = errors.Join(err, encodeErr); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = string(raw)
	}
	session, err := client.Call(t.Context(), p.north, ops.GetSession, ops.InSession{SessionID: p.bobs.ID})
	add("session", session, err)
	messages, err := client.Call(t.Context(), p.north, ops.ListMessages, ops.MessageList{InSession: ops.InSession{SessionID: p.bobs.ID}})
	add("messages", messages, err)
	runs, err := client.Call(t.Context(), p.north, ops.ListRuns, ops.SessionPage{InSession: ops.InSession{SessionID: p.bobs.ID}})
	add("runs", runs, err)
	memories, err := client.Call(t.Context(), p.north, ops.ListMemories, ops.MemoryList{OfUser: ops.OfUser{UserID: "bob"}})
	add("memories", memories, err)
	for n := 1; n > 0; apptest.PauseBriefly(t) { // messages are indexed in the background
		p.ReadRow(&n, "SELECT COUNT(*) FROM sessions WHERE id = ? AND indexed_seq < last_seq", p.bobs.ID)
	}
	for _, q := range []string{
		"SELECT COUNT(*) FROM session_events WHERE session_id = @bobs", "SELECT COUNT(*) FROM search_entries WHERE session_id = @bobs",
		"SELECT COUNT(*) FROM model_calls WHERE session_id = @bobs AND user_id = 'bob'", "SELECT COUNT(*) FROM idempotency_keys WHERE key = 'bobs ' || @bobs",
		"SELECT COUNT(*) FROM blobs WHERE user_id = 'bob'", "SELECT COUNT(*) FROM blob_references WHERE session_id = @bobs",
		"SELECT COUNT(*) FROM messages WHERE session_id = @shared", "SELECT COUNT(*) FROM runs WHERE session_id = @shared",
		"SELECT COUNT(*) FROM model_calls WHERE owner = 'north'", "SELECT SUM(output_tokens) FROM model_calls WHERE owner = 'north'",
	} {
		var n int64
		p.ReadRow(&n, strings.NewReplacer("@bobs", "'"+string(p.bobs.ID)+"'", "@shared", "'"+string(p.shared.ID)+"'").Replace(q))
		out[q] = fmt.Sprint(n)
	}
	return out
}

// checkGone looks for anything that the user left behind, and for what others have.
func (p *purging) checkGone(t *testing.T, others map[string]string) {
	t.Helper()
	for place, path := range p.Marks.Find(t, p.Folders) {
		t.Errorf("%s is still in %s", place, path)
	}
	compare.Equal(t, "what others have", others, p.rest())
	p.checkShared(t)
}

// checkShared looks at what is left in the session of both.
func (p *purging) checkShared(t *testing.T) {
	t.Helper()
	page := must.Get(client.Call(t.Context(), p.north, ops.ListMessages, ops.MessageList{InSession: ops.InSession{SessionID: p.shared.ID}}))(t)
	var bobs []string
	for _, m := range page.Items {
		if m.DeletedAt == nil {
			bobs = append(bobs, m.Content)
		} else if m.Content != "" || m.Author != "" || len(m.Metadata) > 0 || m.ClientMessageID != "" || len(m.ToolCalls) > 0 {
			t.Errorf("message %d is not empty: %+v", m.Seq, m)
		}
	}
	want := []string{"Bob asks the team", "answer to: Bob asks the team", "Bob closes", "answer to: [from user bob]\nBob closes"}
	compare.Equal(t, "what Bob wrote, and the answers to it", want, bobs)
	answer := must.Get(apptest.SendAndWait(t.Context(), p.north, core.SendMessage{SessionID: p.shared.ID, Content: "and on", User: "bob"}))(t)
	compare.Equal(t, "the session cannot go on", core.RunSucceeded, answer.Run.Status)
}

// No API key can purge: only who can read the data folder.
func TestPurgeIsForOperators(t *testing.T) {
	t.Parallel()
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), func(c *config.Config) {
		c.Auth.Keys = []config.APIKey{{Name: "north", Secret: config.NewSecret("n")}, {Name: core.LocalOwner, Secret: config.NewSecret("l")}}
	})
	session := must.Get(client.Call(t.Context(), h.NewClient("n"), ops.CreateSession, ops.NewSession{UserID: "ann"}))(t)
	for _, key := range []string{"n", "l", ""} {
		if _, err := client.Call(t.Context(), h.NewClient(key), ops.PurgeUser, core.PurgeUser{Owner: "north", User: "ann"}); !errors.Is(err, core.ErrForbidden) {
			t.Errorf("users purge with the key %q: %v, want it refused", key, err)
		}
		if _, err := client.Call(t.Context(), h.NewClient(key), ops.PurgeSessions, core.PurgeSessions{IDs: []core.SessionID{session.ID}}); !errors.Is(err, core.ErrForbidden) {
			t.Errorf("sessions purge with the key %q: %v, want it refused", key, err)
		}
	}
	operator := h.NewClient(h.App.Token())
	if report := must.Get(client.Call(t.Context(), operator, ops.PurgeSessions, core.PurgeSessions{IDs: []core.SessionID{session.ID}, PurgeOptions: core.PurgeOptions{DryRun: true}}))(t); !report.DryRun || len(report.Sessions) != 1 {
		t.Errorf("dry run: %+v", report)
	}
	must.Get(client.Call(t.Context(), h.NewClient("n"), ops.GetSession, ops.InSession{SessionID: session.ID}))(t) // still there
	if report := must.Get(client.Call(t.Context(), operator, ops.PurgeSessions, core.PurgeSessions{IDs: []core.SessionID{session.ID}}))(t); report.Left() != 0 || report.Compacted {
		t.Errorf("without compaction: %+v", report)
	}
	if _, err := client.Call(t.Context(), h.NewClient("n"), ops.GetSession, ops.InSession{SessionID: session.ID}); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("after the purge: %v", err)
	}
	if _, err := client.Call(t.Context(), operator, ops.PurgeSessions, core.PurgeSessions{IDs: []core.SessionID{session.ID}}); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("purge again: %v", err)
	}
	compare.Error(t, "purge of nothing", core.ErrInvalid, compare.ErrorOf(client.Call(t.Context(), operator, ops.PurgeSessions, core.PurgeSessions{})))
}
