package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	operator "bobbin/app/ops"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/pgproxy"
	"bobbin/tests/process"
)

// keyedRequest is a request with an idempotency key, and what it stores.
type keyedRequest struct {
	name   string
	method string // empty = POST
	path   string // below /api/v1, or all of it
	media  string // empty = JSON
	body   string
	other  string         // a body of another request; empty = one with a space more
	word   string         // in a statement of its transaction
	rows   map[string]int // that it adds, by table
}

// keyedAnswer is the answer to it.
type keyedAnswer struct {
	status   int
	code     string
	replayed bool
	body     string
}

// sendKeyed sends the request with the key, again as long as it is being worked on.
func sendKeyed(t *testing.T, h *apptest.Bobbin, r keyedRequest, key string) keyedAnswer {
	t.Helper()
	for {
		path, caller := "/api/v1"+r.path, h.HTTP
		if strings.HasPrefix(r.path, "/v1/") { // the document has none of them
			path, caller = r.path, http.DefaultClient
		}
		req := must.Get(http.NewRequestWithContext(t.Context(), cmp.Or(r.method, http.MethodPost), h.URL+path, strings.NewReader(r.body)))(t)
		req.Header.Set("Content-Type", cmp.Or(r.media, "application/json"))
		req.Header.Set("Idempotency-Key", key)
		req.Header.Set("Prefer", "respond-async")
		res := must.Get(caller.Do(req))(t)
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		must.Do(t, err)
		var problem struct {
			Code  string
			Error struct{ Code string }
		}
		_ = json.Unmarshal(body, &problem) // an answer of success has no code
		if code := cmp.Or(problem.Code, problem.Error.Code); code != core.CodeInProgress {
			return keyedAnswer{res.StatusCode, code, res.Header.Get("Idempotency-Replayed") == "true", string(body)}
		}
		apptest.PauseBriefly(t)
	}
}

// asksForMessage reports whether the key is a client_message_id: nothing is kept then.
func asksForMessage(r keyedRequest) bool {
	return r.rows["runs"] > 0 || r.name == "append"
}

// countedTables are those whose rows show how often something was done.
func countedTables() []string {
	return []string{"sessions", "messages", "session_summaries", "memories", "blobs", "runs", "session_events"}
}

func rowCounts(t *testing.T, g *gorm.DB) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, table := range countedTables() {
		var n int
		must.Do(t, g.Raw("SELECT COUNT(*) FROM "+table).Scan(&n).Error)
		counts[table] = n
	}
	return counts
}

// keyedRequests are a request of each kind that stores something.
func keyedRequests(t *testing.T, h *apptest.Bobbin) []keyedRequest {
	t.Helper()
	const history = `[{"role":"user","content":"One?"},{"role":"assistant","content":"1."},{"role":"user","content":"Two?"},{"role":"assistant","content":"2."}]`
	long := strings.Repeat("i", 6000) // no answer that has it is kept
	talk := func() (core.SessionID, []core.Message) {
		id, lines := apptest.NewSession(t, h.Client, ops.NewSession{Title: "keyed", Instructions: long}), ""
		for i := range 4 {
			note := apptest.NewWriter(uint64(5 + i)).Sentences(30)
			lines += fmt.Sprintf("{\"role\":\"user\",\"content\":\"Note %d. %s\"}\n{\"role\":\"assistant\",\"content\":\"Noted: %s\"}\n", i, note, note)
		}
		bringIn(t, h.Client, id, core.ImportLines, lines)
		return id, apptest.ListMessages(t, h.Client, id)
	}
	path := func(id core.SessionID, rest string) string { return "/sessions/" + string(id) + rest }
	plain := func() core.SessionID { id, _ := talk(); return id }
	branched, log := talk()
	must.Get(client.Call(t.Context(), h, ops.RegenerateMessage, core.Regenerate{SessionID: branched, MessageID: log[3].ID}))(t)
	restored := plain()
	for i := range 2 {
		must.Get(client.Call(t.Context(), h, ops.SummarizeSession, ops.Summarize{InSession: ops.InSession{SessionID: restored}}))(t)
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: restored, Content: fmt.Sprintf("More %d.", i)})
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: restored, Content: fmt.Sprintf("Still more %d.", i)})
	}
	edited, lines := talk()
	again, turns := talk()
	ended := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: plain(), Content: long}).Run
	waiting := asks(t, h, "use the calculator and current_time")
	metadata, items := `{"metadata":{`, `{"items":[`
	for i := range 12 {
		metadata += fmt.Sprintf(`"k%d":"%s",`, i, long[:500])
	}
	metadata = strings.TrimSuffix(metadata, ",") + "}}"
	for i := range 250 { // more than one transaction stores
		items += fmt.Sprintf(`{"role":"user","content":"%d"},{"role":"assistant","content":"x"},`, i)
	}
	items = strings.TrimSuffix(items, ",") + "]}"
	instructed := plain()
	standing := must.Get(client.Call(t.Context(), h, ops.AddStandingInstruction, ops.NewInstruction{InSession: ops.InSession{SessionID: instructed}, Text: "short"}))(t)
	var response struct{ ID string }
	must.Do(t, json.Unmarshal([]byte(sendKeyed(t, h, keyedRequest{path: "/v1/responses", body: `{"model":"careful","input":"hello",` + metadata[1:]}, "response").body), &response))
	var form bytes.Buffer
	writer := multipart.NewWriter(&form)
	part, _ := writer.CreateFormFile("file", "note.txt")
	_, _ = part.Write([]byte("a note"))
	_ = writer.Close()
	return []keyedRequest{
		{name: "create a session", path: "/sessions", body: `{"title":"T"}`, word: `INTO "sessions"`, rows: map[string]int{"sessions": 1}},
		{name: "a long answer", path: "/sessions", body: `{"instructions":"` + long + `"}`, word: `INTO "sessions"`, rows: map[string]int{"sessions": 1}},
		{name: "change a session", method: "PATCH", path: path(plain(), ""), body: `{"title":"U"}`, word: `"title"=`, rows: map[string]int{"session_events": 1}},
		{name: "fork", path: path(plain(), "/fork"), body: `{}`, word: `UPDATE "idempotency_keys"`, rows: map[string]int{"sessions": 1, "messages": 8}},
		{name: "import", path: path(plain(), "/messages/import"), body: history, word: `INTO "messages"`, rows: map[string]int{"messages": 4, "session_events": 4}},
		{name: "append", path: path(plain(), "/messages"), body: `{"role":"assistant","content":"<think>Hm.</think>x","run":false}`, other: `{"content":"hello"}`, word: `INTO "messages"`, rows: map[string]int{"messages": 1, "session_events": 1}},
		{name: "select a branch", path: path(branched, "/messages/"+string(log[3].ID)+"/select"), body: `{}`, word: `UPDATE "messages" SET "on_path"`, rows: map[string]int{"session_events": 1}},
		{name: "summarize", path: path(plain(), "/summarize"), body: `{}`, word: `INTO "session_summaries"`, rows: map[string]int{"session_summaries": 1, "session_events": 1}},
		{name: "restore a summary", path: path(restored, "/summaries/1/restore"), body: `{}`, word: `INTO "session_summaries"`, rows: map[string]int{"session_summaries": 1, "session_events": 1}},
		{name: "upload", path: "/blobs", media: writer.FormDataContentType(), body: form.String(), word: `INTO "blobs"`, rows: map[string]int{"blobs": 1}},
		{name: "remember", path: "/memories", body: `{"content":"likes tea"}`, word: `INTO "memories"`, rows: map[string]int{"memories": 1}},
		{name: "cancel", path: "/runs/" + string(ended.ID) + "/cancel", body: `{}`, word: `UPDATE "idempotency_keys"`},
		{name: "decide", path: "/runs/" + string(waiting.ID) + "/approvals/" + string(waiting.Approvals[0].ID), body: `{"decision":"approve","arguments":{"expression":"` + long + `"}}`, word: `UPDATE "idempotency_keys"`, rows: map[string]int{"session_events": 1}},
		{name: "add an instruction", path: path(plain(), "/standing-instructions"), body: `{"text":"` + long[:500] + `"}`, word: `INTO "standing_instructions"`},
		{name: "edit an instruction", method: "PATCH", path: path(instructed, "/standing-instructions/"+string(standing.ID)), body: `{"text":"` + long[:500] + `"}`, word: `UPDATE "standing_instructions"`},
		{name: "cancel a response", path: "/v1/responses/" + response.ID + "/cancel", body: `{}`, word: `UPDATE "idempotency_keys"`},
		{name: "create a conversation", path: "/v1/conversations", body: metadata, word: `INTO "sessions"`, rows: map[string]int{"sessions": 1}},
		{name: "change a conversation", path: "/v1/conversations/conv_" + string(plain()), body: metadata, word: `UPDATE "idempotency_keys"`, rows: map[string]int{"session_events": 1}},
		{name: "add items", path: "/v1/conversations/conv_" + string(plain()) + "/items", body: items, word: `UPDATE "idempotency_keys"`, rows: map[string]int{"messages": 500, "session_events": 500}},
		{name: "send", path: path(plain(), "/messages"), body: `{"content":"hello"}`, other: `{"content":"hello","run":false}`, word: `INTO "runs"`, rows: map[string]int{"runs": 1}},
		{name: "edit", method: "PATCH", path: path(edited, "/messages/"+string(lines[2].ID)), body: `{"content":"hello"}`, word: `INTO "runs"`, rows: map[string]int{"runs": 1}},
		{name: "regenerate", path: path(again, "/messages/"+string(turns[3].ID)+"/regenerate"), body: `{}`, word: `INTO "runs"`, rows: map[string]int{"runs": 1}},
	}
}

// What is done with an idempotency key is done once, also when the database commits it and
// the answer of the COMMIT gets lost: the repetition finds what there is and answers.
func TestLostCommits(t *testing.T) {
	t.Parallel()
	url := dbtest.MigratedPostgresURL(t)
	proxy := pgproxy.New(t, url)
	h := apptest.NewAsking(t, proxy.URL)
	direct := dbtest.Open(t, url).Gorm
	for i, r := range keyedRequests(t, h) {
		t.Run(r.name, func(t *testing.T) {
			key, before := fmt.Sprint("key-", i), rowCounts(t, direct)
			committed := proxy.Lose(r.word)
			if got := sendKeyed(t, h, r, key); got.status != http.StatusServiceUnavailable || got.code != "database_unavailable" {
				t.Fatalf("got %+v, want that the database did not answer", got)
			}
			<-committed
			got := sendKeyed(t, h, r, key)
			compare.True(t, got.status/100 == 2 && got.replayed != asksForMessage(r), "got %+v for the repetition, want an answer that is marked as one", got)
			if again := sendKeyed(t, h, r, key); again.status/100 != 2 || got.replayed && again != got {
				t.Errorf("got %+v for the second repetition, want %+v", again, got)
			}
			other := r
			if other.body += " "; r.other != "" {
				other.body = r.other
			}
			if got := sendKeyed(t, h, other, key); (r.other != "" || !asksForMessage(r)) && got.code != core.CodeKeyReused {
				t.Errorf("got %+v for another body, want %s", got, core.CodeKeyReused)
			}
			after := rowCounts(t, direct)
			for _, table := range countedTables() {
				if r.rows["runs"] > 0 && table != "runs" {
					continue // the run goes on beside the test
				}
				compare.Equal(t, "new rows in "+table, r.rows[table], after[table]-before[table])
			}
		})
	}
}

// withCluster joins the house to the replicas at the peers.
func withCluster(addr string, peers ...string) apptest.Setting {
	return func(c *config.Config) {
		c.NATS = config.NATS{ClusterAddr: addr, Peers: peers, Secret: config.NewSecret("hush-hush-hush-hush")}
	}
}

// newReplicas starts two houses on one PostgreSQL that are joined by their own cluster. The gate holds the answer of the
// run, which the first one executes.
func newReplicas(t *testing.T) (a, b *apptest.Bobbin, g *gate, run core.Run) {
	t.Helper()
	p, g := newHolding(t)
	addr := process.FreeAddress(t)
	url := dbtest.PostgresURL(t)
	a = apptest.New(t, url, apptest.WithModel("house", 8192, 2048, p), apptest.WithGrace(time.Millisecond), withCluster(addr))
	b = apptest.New(t, url, apptest.WithModel("house", 8192, 2048, p), apptest.WithGrace(time.Millisecond), withCluster("127.0.0.1:0", addr))
	compare.Contains(t, "the start-up lines", addr, b.App.Joined())
	_, run = held(t, a, g)
	return a, b, g, run
}

// readText follows the run until text of its answer comes, and returns that and the number of the last durable event.
func readText(ctx context.Context, t *testing.T, c *client.Client, run core.RunID) (text string, seen core.Cursor) {
	t.Helper()
	for e, err := range c.WatchRun(ctx, run, core.Cursor{}) {
		must.Do(t, err)
		seen.After = max(seen.After, e.Seq)
		if e.Type == core.EventMessageDelta {
			return apptest.EventData[core.DeltaData](t, e).Text, seen
		}
	}
	t.Fatal("no text of the answer came")
	return "", seen
}

// held sends a message at the house whose answer is held in the middle.
func held(t *testing.T, h *apptest.Bobbin, g *gate) (core.SessionID, core.Run) {
	t.Helper()
	id := apptest.NewSession(t, h.Client, ops.NewSession{})
	run := must.Get(apptest.SendAsync(t.Context(), h, core.SendMessage{SessionID: id, Content: "hold this one"}))(t)
	<-g.arrived
	return id, run
}

// TestReplicaShowsTheAnswerOfAnother: sent at one, watched at the other: the text so
// far, the rest as it comes, the same events, also after a reconnect to the other one
// with the last id; and a wait there truly waits.
func TestReplicaShowsTheAnswerOfAnother(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, b, g, run := newReplicas(t)
	there, _ := readText(ctx, t, b.Client, run.ID)
	_, seen := readText(ctx, t, a.Client, run.ID)
	g.open()
	for name, from := range map[string]core.Cursor{"there": {}, "moved with Last-Event-ID": seen} {
		got := apptest.ReadTurn(t, b.WatchRun(ctx, run.ID, from))
		if got.Run.Status != core.RunSucceeded || got.Answer.ID != got.Run.AnswerID || !strings.HasPrefix(got.Answer.Content, there) {
			t.Errorf("%s: got the run %s with the answer %q, want one that begins with %q", name, got.Run.Status, got.Answer.Content, there)
		}
	}
	compare.Equal(t, "got.Status", core.RunSucceeded, must.Get(client.Call(ctx, b, ops.GetRun, ops.InRun{RunID: run.ID}))(t).Status)
}

// TestReplicaCancelsTheRunOfAnother: the cancel reaches the process that executes, and
// what was said is kept.
func TestReplicaCancelsTheRunOfAnother(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, b, _, run := newReplicas(t)
	text, seen := readText(ctx, t, b.Client, run.ID)
	got, err := client.Call(ctx, b, ops.CancelRun, ops.Cancel{InRun: ops.InRun{RunID: run.ID}, Wait: true})
	if err != nil || got.Status != core.RunCanceled || got.AnswerID == "" {
		t.Fatalf("got run %s with answer %q, %v, want it canceled and the answer so far kept", got.Status, got.AnswerID, err)
	}
	end := apptest.ReadTurn(t, b.WatchRun(ctx, run.ID, seen))
	if end.Run.Status != core.RunCanceled || end.Answer.ID != got.AnswerID || end.Answer.Content != text {
		t.Errorf("got the run %s with the answer %q, want it canceled with %q", end.Run.Status, end.Answer.Content, text)
	}
}

// TestReplicaTakesOver: what a process that stops had begun, another ends; the text of
// the lost attempt is taken back, and a wait at the other sees the end.
func TestReplicaTakesOver(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, b, g, run := newReplicas(t)
	_, seen := readText(ctx, t, b.Client, run.ID)
	a.Stop()
	g.open()
	end := apptest.ReadTurn(t, b.WatchRun(ctx, run.ID, seen))
	gone := slices.IndexFunc(end.Events, func(e core.Event) bool { return e.Type == core.EventMessageDiscarded })
	if end.Run.Status != core.RunSucceeded || gone < 0 || end.Answer.ID == apptest.EventData[core.DiscardedData](t, end.Events[gone]).MessageID {
		t.Errorf("got the run %s with the answer %s in %+v, want the first text taken back, and another answer", end.Run.Status, end.Answer.ID, end.Events)
	}
	compare.Equal(t, "attempt", 2, must.Get(client.Call(ctx, b, ops.GetRun, ops.InRun{RunID: run.ID}))(t).Attempt)
	compare.Error(t, "no such run", core.ErrNotFound, compare.ErrorOf(client.Call(ctx, b, ops.CancelRun, ops.Cancel{InRun: ops.InRun{RunID: core.NewID[core.RunID]()}})))
}

// TestTwins: two processes with one replica's name on one database. The second one says
// so, as doctor does, and does not take for its own what the first is at; each does its work alone.
func TestTwins(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	p, g := newHolding(t)
	named := func(c *config.Config) { c.Replica.Name = "twin" }
	url := dbtest.PostgresURL(t)
	a := apptest.New(t, url, apptest.WithModel("house", 8192, 2048, p), named)
	_, run := held(t, a, g)
	b := apptest.New(t, url, apptest.WithModel("house", 8192, 2048, p), named)
	const warning = "two processes have the same replica name"
	if !strings.Contains(b.Log.String(), warning) || strings.Contains(a.Log.String(), warning) {
		t.Errorf("want the second one to say that it has the first one's name:\n%s", b.Log)
	}
	look := func() (found operator.Finding) {
		t.Helper()
		cfg := a.Config
		cfg.DataDir = t.TempDir() // another machine's
		withCluster("127.0.0.1:6222")(&cfg)
		for _, f := range operator.Doctor(t.Context(), operator.DoctorOptions{Config: cfg, Logger: slog.New(slog.DiscardHandler)}).Findings {
			if f.Check == "replica" {
				found = f
			}
		}
		return found
	}
	if f := look(); f.Status != operator.VerdictWarn || !strings.Contains(f.Detail, "has been using it since") {
		t.Errorf("doctor on a name that a server has: got %+v, want a warning", f)
	}
	other := apptest.SendMessage(t, b.Client, core.SendMessage{SessionID: apptest.NewSession(t, b.Client, ops.NewSession{}), Content: "and you?"})
	g.open()
	apptest.ReadTurn(t, a.WatchRun(ctx, run.ID, core.Cursor{}))
	got, err := client.Call(ctx, b, ops.GetRun, ops.InRun{RunID: run.ID})
	if err != nil || got.Status != core.RunSucceeded || got.Attempt != 1 || other.Run.Attempt != 1 {
		t.Errorf("got %s at attempt %d, %v, want one attempt of each run", got.Status, got.Attempt, err)
	}
	a.Stop()
	b.Restart()
	compare.Equal(t, "warnings: a name that is free again is taken without a word", 1, strings.Count(b.Log.String(), warning))
	b.Stop()
	compare.Equal(t, "doctor on a name that nobody has", operator.VerdictOK, look().Status)
}
