package e2e_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	operations "bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/ops"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/jwttest"
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
	p.own = must.Get(client.Call(t.Context(), p.north, operations.CreateSession, operations.NewSession{UserID: p.user, Title: "about " + m.Of("title"), Instructions: m.Of("instructions"), Metadata: object("k", m.Of("session metadata"))}))(t)
	p.bobs = must.Get(client.Call(t.Context(), p.north, operations.CreateSession, operations.NewSession{UserID: "bob", Title: "Bob's " + bobsWord}))(t)
	p.shared = must.Get(client.Call(t.Context(), p.north, operations.CreateSession, operations.NewSession{UserID: "bob", Title: "the team"}))(t)
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
			must.Get(client.Call(t.Context(), p.north, operations.EditMessage, operations.EditedMessage{NewMessage: operations.NewMessage{InSession: operations.InSession{SessionID: send.SessionID}, Content: "then something else", Run: new(false)}, MessageID: answer.Run.UserMessageID}))(t)
		}
	}
	must.Get(client.Call(t.Context(), p.north, operations.CreateMemory, operations.NewMemory{UserID: p.user, Content: "remembers " + m.Of("memory"), Metadata: object("k", m.Of("memory metadata"))}))(t)
	must.Get(client.Call(t.Context(), p.north, operations.CreateMemory, operations.NewMemory{UserID: "bob", Content: "Bob remembers the " + bobsWord}))(t)
	title := "later " + m.Of("title in an event")
	must.Get(client.Call(t.Context(), p.north, operations.UpdateSession, operations.SessionPatch{InSession: operations.InSession{SessionID: p.own.ID}, SessionPatch: core.SessionPatch{Title: &title}}))(t)
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
	session, err := client.Call(t.Context(), p.north, operations.GetSession, operations.InSession{SessionID: p.bobs.ID})
	add("session", session, err)
	messages, err := client.Call(t.Context(), p.north, operations.ListMessages, operations.MessageList{InSession: operations.InSession{SessionID: p.bobs.ID}})
	add("messages", messages, err)
	runs, err := client.Call(t.Context(), p.north, operations.ListRuns, operations.SessionPage{InSession: operations.InSession{SessionID: p.bobs.ID}})
	add("runs", runs, err)
	memories, err := client.Call(t.Context(), p.north, operations.ListMemories, operations.MemoryList{OfUser: operations.OfUser{UserID: "bob"}})
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
	page := must.Get(client.Call(t.Context(), p.north, operations.ListMessages, operations.MessageList{InSession: operations.InSession{SessionID: p.shared.ID}}))(t)
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
	session := must.Get(client.Call(t.Context(), h.NewClient("n"), operations.CreateSession, operations.NewSession{UserID: "ann"}))(t)
	for _, key := range []string{"n", "l", ""} {
		compare.Error(t, "users purge with the key "+key, core.ErrForbidden, compare.ErrorOf(client.Call(t.Context(), h.NewClient(key), operations.PurgeUser, core.PurgeUser{Owner: "north", User: "ann"})))
		compare.Error(t, "sessions purge with the key "+key, core.ErrForbidden, compare.ErrorOf(client.Call(t.Context(), h.NewClient(key), operations.PurgeSessions, core.PurgeSessions{IDs: []core.SessionID{session.ID}})))
	}
	operator := h.NewClient(h.App.Token())
	if report := must.Get(client.Call(t.Context(), operator, operations.PurgeSessions, core.PurgeSessions{IDs: []core.SessionID{session.ID}, PurgeOptions: core.PurgeOptions{DryRun: true}}))(t); !report.DryRun || len(report.Sessions) != 1 {
		t.Errorf("dry run: %+v", report)
	}
	must.Get(client.Call(t.Context(), h.NewClient("n"), operations.GetSession, operations.InSession{SessionID: session.ID}))(t) // still there
	if report := must.Get(client.Call(t.Context(), operator, operations.PurgeSessions, core.PurgeSessions{IDs: []core.SessionID{session.ID}}))(t); report.Left() != 0 || report.Compacted {
		t.Errorf("without compaction: %+v", report)
	}
	compare.Error(t, "after the purge", core.ErrNotFound, compare.ErrorOf(client.Call(t.Context(), h.NewClient("n"), operations.GetSession, operations.InSession{SessionID: session.ID})))
	compare.Error(t, "purge again", core.ErrNotFound, compare.ErrorOf(client.Call(t.Context(), operator, operations.PurgeSessions, core.PurgeSessions{IDs: []core.SessionID{session.ID}})))
	compare.Error(t, "purge of nothing", core.ErrInvalid, compare.ErrorOf(client.Call(t.Context(), operator, operations.PurgeSessions, core.PurgeSessions{})))
}

// archive is an export of a user that was read.
type archive struct {
	t     testing.TB
	files map[string][]byte
	bytes int
}

// exportOf exports a user and reads the archive.
func exportOf(t testing.TB, c *client.Client, user string) archive {
	t.Helper()
	var out bytes.Buffer
	must.Do(t, client.Download(t.Context(), c, operations.ExportUser, operations.UserExport{UserID: user}, &out))
	return readArchive(t, out.Bytes())
}

func readArchive(t testing.TB, data []byte) archive {
	t.Helper()
	z := must.Get(zip.NewReader(bytes.NewReader(data), int64(len(data))))(t)
	a := archive{t: t, files: map[string][]byte{}, bytes: len(data)}
	for _, f := range z.File {
		r := must.Get(f.Open())(t)
		a.files[f.Name] = must.Get(io.ReadAll(r))(t)
		must.Do(t, r.Close())
	}
	return a
}

// in returns the names of the files in a folder of the archive.
func (a archive) in(folder string) []string {
	var names []string
	for name := range a.files {
		if strings.HasPrefix(name, folder+"/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// decoded reads a file of the archive.
func decoded[T any](a archive, name string) T {
	a.t.Helper()
	var v T
	if err := json.Unmarshal(a.files[name], &v); err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	return v
}

// saidLines returns a history of n messages as lines.
func saidLines(n int, text string) *bytes.Reader {
	var b bytes.Buffer
	for i := range n {
		role := []string{"user", "assistant"}[i%2]
		fmt.Fprintf(&b, "{\"role\":%q,\"content\":\"%s %d\"}\n", role, text, i)
	}
	return bytes.NewReader(b.Bytes())
}

// fillMore gives the user 1,000 messages more, memories, files and webhooks.
func (p *purging) fillMore(messages int) {
	t := p.T
	t.Helper()
	long := must.Get(client.Call(t.Context(), p.north, operations.CreateSession, operations.NewSession{UserID: p.user, Title: "long", Webhook: &operations.NewWebhook{URL: "https://hooks.example/T0"}}))(t)
	must.Get(p.north.ImportMessages(t.Context(), core.ImportMessages{SessionID: long.ID, Body: saidLines(messages, p.Marks.Of("imported message")), Format: core.ImportLines}))(t)
	must.Get(client.Call(t.Context(), p.north, operations.UpdateSession, operations.SessionPatch{InSession: operations.InSession{SessionID: long.ID}, SessionPatch: core.SessionPatch{Archived: new(true)}}))(t)
	for i := range 20 {
		must.Get(client.Call(t.Context(), p.north, operations.CreateMemory, operations.NewMemory{UserID: p.user, Content: fmt.Sprintf("fact %d %s", i, p.Marks.Of("many memories"))}))(t)
		must.Get(p.north.UploadBlob(t.Context(), core.Upload{User: p.user, Name: "note.txt", Data: []byte(fmt.Sprintf("note %d %s", i, p.Marks.Of("many files")))}))(t)
	}
}

// TestRights: a user with 1,000 messages, memories, files and webhooks is exported and
// deleted over the API; no byte of the user is left in the files of the database.
func TestRights(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		p := newPurging(t, url)
		before := p.Marks.Find(t, p.Folders)
		for _, place := range p.Marks.Places {
			if before[place] == "" && !strings.HasPrefix(place, "word of") {
				t.Errorf("the mark of %q is in no file before the deletion: the search cannot find it", place)
			}
		}
		p.fillMore(1000)
		_, secret := createKey(p.Bobbin, ops.NewKey{Name: "rights", Owner: "north", Rights: core.CanDelete | core.CanExport})
		rights := p.NewClient(secret)

		a := exportOf(t, rights, p.user)
		counts := decoded[core.UserExportCounts](a, "counts.json")
		if counts.Sessions != 2 || counts.Messages < 1000 || counts.Memories != 21 || counts.Files < 21 || counts.MessagesElsewhere != 3 || counts.Keys != 1 || counts.Runs == 0 {
			t.Errorf("exported: %+v", counts)
		}
		var size int64
		for _, name := range a.in("files") {
			size += int64(len(a.files[name]))
		}
		compare.Equal(t, "files of one name, bytes of all", []int64{int64(counts.Files), counts.FileBytes}, []int64{int64(len(a.in("files"))), size})
		if all := fmt.Sprintf("%s", a.files); strings.Contains(all, bobsWord) {
			t.Error("the export has something of another user's own sessions")
		}
		p.checkExported(a)

		others := p.rest()
		d := must.Get(apptest.AwaitDeletion(t.Context(), rights, must.Get(client.Call(t.Context(), rights, operations.CreateDeletion, operations.NewDeletion{UserID: p.user}))(t).ID))(t)
		if d.Report == nil || d.Report.Left() != 0 || d.RowsLeft != 0 || d.RowsTotal < 1000 || len(d.Report.Sessions) != 2 {
			t.Errorf("deletion: %+v", d)
		}
		must.Get(client.Call(t.Context(), p.NewClient(p.App.Token()), operations.PurgeSessions, core.PurgeSessions{PurgeOptions: core.PurgeOptions{Compact: true}}))(t)
		p.checkGone(t, others)
	})
}

// checkExported looks for what is planted.
func (p *purging) checkExported(a archive) {
	p.T.Helper()
	var all bytes.Buffer
	for name, data := range a.files {
		fmt.Fprintf(&all, "%s\n%s\n", name, data)
	}
	for _, place := range []string{
		"title", "title in an event", "instructions", "session metadata", "message", "message metadata", "long message", "memory", "memory metadata", "many memories",
		"blob", "blob name", "many files", "summary", "imported message", "message in a shared session", "run error",
	} {
		if place != "title" && !bytes.Contains(all.Bytes(), []byte(p.Marks.Of(place))) { // another title followed
			p.T.Errorf("%q is not in the export", place)
		}
	}
	compare.Contains(p.T, "the webhook in the export", "https://hooks.example", all.String())
}

// An end user deletes and exports what is their own and nothing else; scopes that the
// token does not have are refused.
func TestUsersOwnData(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		s := jwttest.NewSigner(t, "k", "EdDSA")
		h := apptest.New(t, url, withTokens(jwttest.Serve(t, s)), func(c *config.Config) {
			c.Auth.JWT.Scopes = []string{"read", "write", "delete", "export"}
			c.Auth.JWT.ScopeClaim = "scope"
		})
		as := func(user, scopes string) *client.Client {
			return h.NewClient(s.Token(t, jwttest.Claims(user, map[string]any{"scope": scopes}), nil))
		}
		kim, eve, shop := as("kim", "read write delete export"), as("eve", "read write delete export"), h.NewClient("configured-secret")
		mine := apptest.NewSession(t, kim, operations.NewSession{})
		apptest.SendMessage(t, kim, core.SendMessage{SessionID: mine, Content: "a secret of kim's"})
		theirs := apptest.NewSession(t, eve, operations.NewSession{})
		must.Get(client.Call(t.Context(), shop, operations.UpdateSession, operations.SessionPatch{InSession: operations.InSession{SessionID: mine}, Webhook: &operations.NewWebhook{URL: "https://hooks.example/hushhush"}}))(t)

		_, err := client.Call(t.Context(), as("kim", "read write"), operations.CreateDeletion, operations.NewDeletion{SessionID: mine})
		wantRefused(t, err, http.StatusForbidden, "missing_scope")
		_, err = client.Call(t.Context(), shop, operations.CreateDeletion, operations.NewDeletion{UserID: "kim"})
		wantRefused(t, err, http.StatusForbidden, "missing_scope")
		wantRefused(t, client.Download(t.Context(), as("kim", "read write delete"), operations.ExportUser, operations.UserExport{UserID: ""}, io.Discard), http.StatusForbidden, "missing_scope")
		_, err = client.Call(t.Context(), eve, operations.CreateDeletion, operations.NewDeletion{SessionID: mine})
		wantRefused(t, err, http.StatusNotFound, "not_found")
		_, err = client.Call(t.Context(), eve, operations.CreateDeletion, operations.NewDeletion{UserID: "kim"})
		wantRefused(t, err, http.StatusForbidden, "forbidden")
		wantRefused(t, client.Download(t.Context(), eve, operations.ExportUser, operations.UserExport{UserID: "kim"}, io.Discard), http.StatusForbidden, "forbidden")

		a := exportOf(t, kim, "")
		for name, data := range a.files {
			if bytes.Contains(data, []byte("hushhush")) || name == "keys.jsonl" {
				t.Errorf("%s shows an end user what is the owner's: %.300s", name, data)
			}
		}
		if names := a.in("sessions"); len(names) != 1 || !bytes.Contains(a.files[names[0]], []byte("a secret of kim's")) {
			t.Errorf("exported sessions %v, want kim's", names)
		}

		first := must.Get(client.Call(t.Context(), kim, operations.CreateDeletion, operations.NewDeletion{SessionID: mine}))(t)
		compare.Equal(t, "listed sessions that are being deleted", 0, len(must.Get(client.Call(t.Context(), kim, operations.ListSessions, core.SessionQuery{}))(t).Items))
		_, err = client.Call(t.Context(), eve, operations.GetDeletion, operations.InDeletion{DeletionID: first.ID})
		wantRefused(t, err, http.StatusNotFound, "not_found")
		done := must.Get(apptest.AwaitDeletion(t.Context(), kim, first.ID))(t)
		_, err = client.Call(t.Context(), kim, operations.GetSession, operations.InSession{SessionID: mine})
		wantRefused(t, err, http.StatusNotFound, "not_found")
		if again := must.Get(client.Call(t.Context(), kim, operations.CreateDeletion, operations.NewDeletion{SessionID: mine}))(t); again.ID != first.ID || again.Status != core.DeletionSucceeded || done.Report.Left() != 0 {
			t.Errorf("a session that is gone: got %+v, want the deletion %s and its report", again, first.ID)
		}
		must.Get(apptest.AwaitDeletion(t.Context(), kim, must.Get(client.Call(t.Context(), kim, operations.CreateDeletion, operations.NewDeletion{UserID: "kim"}))(t).ID))(t)
		session(t, eve, theirs)
		var users int64
		must.Do(t, dbtest.Open(t, url).Gorm.Raw("SELECT COUNT(*) FROM deletions WHERE user_id <> ''").Row().Scan(&users))
		compare.Equal(t, "deletions that are done and name a user", 0, users)
	})
}
