package e2e_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/jwttest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// dataText returns the data of an event as the client got them.
func dataText(t testing.TB, e core.Event) string {
	t.Helper()
	text := must.Get(json.Marshal(e.Data))(t)
	return string(text)
}

// kinds counts the four kinds of messages.
func kinds(all []core.Message) map[string]int {
	n := map[string]int{}
	for _, m := range all {
		switch {
		case m.Role == core.RoleAssistant && len(m.ToolCalls) > 0:
			n["tool calls"]++
		case m.Role == core.RoleAssistant:
			n["answers"]++
		case m.Role == core.RoleUser:
			n["questions"]++
		case m.Role == core.RoleTool:
			n["tool results"]++
		default:
			n[string(m.Role)]++
		}
	}
	return n
}

// session returns the session as it is now.
func session(t testing.TB, c *client.Client, id core.SessionID) core.Session {
	t.Helper()
	return must.Get(client.Call(t.Context(), c, ops.GetSession, ops.InSession{SessionID: id}))(t).Session
}

// contextOf returns a session's context report, held against the log and the
// prompt view. They are read again if a summary was made in the background meanwhile.
func contextOf(t testing.TB, c *client.Client, id core.SessionID) core.ContextReport {
	t.Helper()
	r := report(t, c, id)
	var view core.PromptView
	var s core.Session
	for {
		view = must.Get(client.Call(t.Context(), c, ops.GetPrompt, ops.InSession{SessionID: id}))(t)
		s = session(t, c, id)
		before := r
		if r = report(t, c, id); r.Used == before.Used && r.SummaryVersion == before.SummaryVersion && r.Coverage == before.Coverage {
			break
		}
	}
	tokens, shown, placed := 0, 0, r.Coverage
	for i, m := range view.Messages {
		if m.Placement != core.PlaceSystem || i < len(view.Messages)-1 { // a system prompt at the end counts as such
			tokens += m.Tokens
		}
		if m.MessageID != "" {
			shown++
		}
	}
	for what, pair := range map[string][2]int{
		"sections and used":               {sections(r, "system", "tools", "summary", "pinned", "standing", "tail", "run"), r.Used},
		"used and the prompt view":        {r.Used, view.Tokens},
		"messages and the view's":         {sections(r, "standing", "tail", "run"), tokens},
		"window and its parts":            {r.Window, r.Used + r.Reserve + r.Free},
		"coverage and the session":        {r.Coverage.Messages, s.MessageCount},
		"summarized and the session":      {r.Coverage.Summarized, s.SummarizedCount},
		"lost and none":                   {r.Coverage.Lost, 0},
		"output limits":                   {r.MaxOutput, view.MaxOutputTokens},
		"coverage and its parts":          {placed.Summarized + placed.Compacted + placed.Verbatim + placed.Masked + placed.Shortened + placed.LeftOut + placed.Excluded, placed.Messages},
		"messages shown and those placed": {shown, placed.Verbatim + placed.Masked + placed.Shortened},
	} {
		compare.Equal(t, "context: "+what, pair[1], pair[0])
	}
	compare.True(t, r.Used <= r.Usable, "context: got %d tokens used, usable are %d", r.Used, r.Usable)
	return r
}

func report(t testing.TB, c *client.Client, id core.SessionID) core.ContextReport {
	t.Helper()
	return must.Get(client.Call(t.Context(), c, ops.GetContext, ops.InSession{SessionID: id}))(t)
}

func sections(r core.ContextReport, names ...string) (n int) {
	for _, s := range r.Sections {
		if slices.Contains(names, s.Name) {
			n += s.Tokens
		}
	}
	return n
}

// reported returns the context report of a run's last model call.
func reported(t testing.TB, c *client.Client, id core.RunID) core.ContextReport {
	t.Helper()
	run := must.Get(client.Call(t.Context(), c, ops.GetRun, ops.InRun{RunID: id}))(t)
	var r core.ContextReport
	if err := json.Unmarshal(run.Context, &r); err != nil {
		t.Fatalf("run's context %q: %v", run.Context, err)
	}
	return r
}

// history returns JSON lines of n messages: question and answer in turn, with
// facts here and there.
func history(n int) string {
	var b strings.Builder
	for i := range n {
		if i%2 == 0 {
			fmt.Fprintf(&b, `{"role":"user","content":"Question %d: what do we know about item %d of the inventory in hall %d?"}`+"\n", i, i*7, i%13)
			continue
		}
		fmt.Fprintf(&b, `{"role":"assistant","content":"Answer %d: item %d weighs %d kg and was checked on day %d; nothing else is known about it."}`+"\n", i, i*7, i%400, i)
	}
	return b.String()
}

func bringIn(t testing.TB, c *client.Client, id core.SessionID, format core.ImportFormat, text string) core.Imported {
	t.Helper()
	return must.Get(c.ImportMessages(t.Context(), core.ImportMessages{SessionID: id, Body: strings.NewReader(text), Format: format}))(t)
}

// withClaude adds a model that is spoken to as Anthropic's.
func withClaude(name, model string, p *provider.Server) apptest.Setting {
	return func(c *config.Config) {
		c.Models = append(c.Models, config.Model{Name: name, Provider: "anthropic", Model: model, BaseURL: p.URL, ContextWindow: 16_000, MaxOutputTokens: 2_048})
	}
}

// twoOwners gives a house the owners alice and bob.
func twoOwners(c *config.Config) {
	c.Auth.Keys = []config.APIKey{
		{Name: "alice", Secret: config.NewSecret("alice's secret")}, {Name: "bob", Secret: config.NewSecret("bob's secret")},
	}
}

// gate holds the answers to questions with the word "hold" in them open: half of
// such an answer is sent when arrived tells of it; the rest comes after open.
type gate struct {
	arrived chan string // the questions
	open    func()      // for good; may be called again
	opened  chan struct{}
}

// newHolding starts a provider that holds its answers, and returns its gate too.
func newHolding(t testing.TB) (*provider.Server, *gate) {
	g := &gate{arrived: make(chan string, 100), opened: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.opened) })
	p := apptest.NewProvider(t, provider.Options{Window: 8192, Hold: g.hold})
	t.Cleanup(g.open) // before the provider is stopped: its handlers must end
	return p, g
}

// hold is provider.Options.Hold.
func (g *gate) hold(question string) {
	if strings.Contains(question, "hold") {
		g.arrived <- question
		<-g.opened
	}
}

// wantProblem wants an error of the kind and status with the words in it.
func wantProblem(t testing.TB, err error, kind error, status int, words string) {
	t.Helper()
	var problem *client.ProblemError
	if !errors.As(err, &problem) || !errors.Is(err, kind) || problem.Status != status || !strings.Contains(err.Error(), words) {
		t.Errorf("got the error %v, want %v (%d) with %q in it", err, kind, status, words)
	}
}

// line is a message as JSON, as an import takes it.
func line(t testing.TB, m map[string]any) string {
	t.Helper()
	raw := must.Get(json.Marshal(m))(t)
	return string(raw) + "\n"
}

// talked is a conversation in which a user says something, a tool is called with a
// command and its result is something; then it goes on for a while.
func talked(t testing.TB, said, command, result string) string {
	t.Helper()
	args := must.Get(json.Marshal(map[string]string{"command": command}))(t)
	text := line(t, map[string]any{"role": "user", "content": said}) +
		line(t, map[string]any{"role": "assistant", "content": "I look.", "tool_calls": []any{map[string]any{
			"id": "c1", "type": "function", "function": map[string]any{"name": "shell", "arguments": string(args)}}}}) +
		line(t, map[string]any{"role": "tool", "tool_call_id": "c1", "name": "shell", "content": result}) +
		line(t, map[string]any{"role": "assistant", "content": "It is done."})
	return text + history(12)
}

// headReader follows the heads of a client's sessions.
type headReader struct {
	t      *testing.T
	events chan core.Event
}

// followHeads returns a reader after its resync: the client loads its list then.
func followHeads(t *testing.T, c *client.Client) headReader {
	t.Helper()
	r := headReader{t, make(chan core.Event, 1000)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e, err := range c.WatchHeads(t.Context()) {
			if err == nil {
				r.events <- e
			}
		}
	}()
	t.Cleanup(func() { <-done })
	if e := r.next(); e.Type != core.EventResync || e.SessionID != "" {
		t.Fatalf("got %s first, want a resync", e.Type)
	}
	return r
}

func (r headReader) next() core.Event {
	r.t.Helper()
	select {
	case e := <-r.events:
		return e
	case <-time.After(30 * time.Second):
		r.t.Fatal("no head in 30 s")
		return core.Event{}
	}
}

// await reads until a head of the session is as wanted.
func (r headReader) await(what string, id core.SessionID, is func(core.SessionHead) bool) {
	r.t.Helper()
	var seen []string
	for {
		e := r.next()
		head, _ := e.Data.(core.SessionHead)
		if _, removed := e.Data.(core.RemovedHead); e.SessionID == id && (removed && is == nil || !removed && is != nil && is(head)) {
			return
		}
		if seen = append(seen, fmt.Sprintf("%s %+v", e.SessionID, e.Data)); len(seen) > 50 {
			r.t.Fatalf("%s: got %q", what, seen)
		}
	}
}

// A list of sessions follows what happens in all of them: it needs no other request after the
// first one.
func TestHeads(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		h := apptest.NewAsking(t, url)
		r := followHeads(t, h.Client)
		id := apptest.NewSession(t, h.Client, ops.NewSession{Agent: "careful", Title: "Sums"})
		r.await("created", id, func(s core.SessionHead) bool {
			return s.Title == "Sums" && s.Agent == "careful" && s.Status == core.SessionIdle
		})
		run := asksIn(t, h, id, "calculator")
		r.await("waiting", id, func(s core.SessionHead) bool {
			w := s.Waiting
			return s.Status == core.SessionWaiting && w != nil && w.RunID == run.ID && w.ApprovalID == run.Approvals[0].ID && w.Tool == run.Approvals[0].Tool
		})
		decide(t, h, run, ops.Decision{Decision: "approve"})
		done, _ := ended(t, h, run.ID)
		r.await(string(done.Status), id, func(s core.SessionHead) bool {
			return s.Status == core.SessionIdle && s.Waiting == nil && s.MessageCount >= 4 && s.LastEvent > 0
		})
		must.Get(client.Call(t.Context(), h, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: id}, SessionPatch: core.SessionPatch{Archived: new(true)}}))(t)
		r.await("archived", id, func(s core.SessionHead) bool { return s.Archived })
		must.Get(client.Call(t.Context(), h, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: id}, SessionPatch: core.SessionPatch{Archived: new(false)}}))(t)
		r.await("brought back", id, func(s core.SessionHead) bool { return !s.Archived })
		fork := must.Get(client.Call(t.Context(), h, ops.ForkSession, core.ForkSession{SessionID: id}))(t)
		r.await("forked", fork.ID, func(s core.SessionHead) bool { return s.Title == "Sums (fork)" })
		d := must.Get(client.Call(t.Context(), h, ops.CreateDeletion, ops.NewDeletion{SessionID: id}))(t)
		must.Get(apptest.AwaitDeletion(t.Context(), h, d.ID))(t)
		r.await("removed", id, nil)
	})
}

// Users see the heads of their own sessions, their backend those of all.
func TestHeadsOfUsers(t *testing.T) {
	t.Parallel()
	s := jwttest.NewSigner(t, "k", "EdDSA")
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), withTokens(jwttest.Serve(t, s)))
	kim, eve := h.NewClient(s.User(t, "kim")), h.NewClient(s.User(t, "eve"))
	ofShop, ofEve := followHeads(t, h.NewClient("configured-secret")), followHeads(t, eve)
	kims := apptest.NewSession(t, kim, ops.NewSession{})
	ofShop.await("kim's", kims, func(s core.SessionHead) bool { return s.UserID == "kim" })
	eves := apptest.NewSession(t, eve, ops.NewSession{})
	ofShop.await("eve's", eves, func(s core.SessionHead) bool { return s.UserID == "eve" })
	compare.Equal(t, "eve's first head", eves, ofEve.next().SessionID)
}

// hookKey signs the webhooks of these tests.
const hookKey = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// hooked is what a receiver of webhooks was told once.
type hooked struct {
	id, signature, wanted string // wanted is the signature by the words of Standard Webhooks
	kind                  core.EventType
	run                   core.Run
	answer                string
}

// hookServer is a program that is told how runs end. It answers with the codes in
// turn, then with 200; the code 0 is no answer until the sender goes away.
func hookServer(t *testing.T, codes ...int) (url string, told <-chan hooked) {
	t.Helper()
	seen, next := make(chan hooked, 100), make(chan int, len(codes))
	for _, c := range codes {
		next <- c
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var report struct {
			Type core.EventType
			Data struct {
				Run     core.Run
				Message *core.Message
			}
		}
		if err != nil || json.Unmarshal(body, &report) != nil || strings.Contains(string(body), hookKey) || strings.Contains(string(body), "hush") {
			t.Errorf("body: %v, %s", err, body)
		}
		key, _ := base64.StdEncoding.DecodeString(hookKey)
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(r.Header.Get("webhook-id") + "." + r.Header.Get("webhook-timestamp") + "." + string(body)))
		got := hooked{
			id: r.Header.Get("webhook-id"), signature: r.Header.Get("webhook-signature"), kind: report.Type, run: report.Data.Run,
			wanted: "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)),
		}
		if report.Data.Message != nil {
			got.answer = report.Data.Message.Content
		}
		seen <- got
		select {
		case code := <-next:
			if code == 0 {
				<-r.Context().Done()
				return
			}
			w.WriteHeader(code)
		default:
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/hook?token=hush", seen
}

// delivered waits until a delivery of the session has come to its end, and returns
// those of the run.
func delivered(t *testing.T, c *client.Client, session core.SessionID, run core.RunID) []core.Delivery {
	t.Helper()
	for e, err := range c.WatchSession(t.Context(), session, core.Cursor{}) {
		must.Do(t, err)
		if e.Type == core.EventDeliveryUpdated && e.RunID == run && apptest.EventData[core.DeliveryData](t, e).State != core.DeliveryPending {
			break
		}
	}
	return must.Get(client.Call(t.Context(), c, ops.ListDeliveries, ops.InRun{RunID: run}))(t).Items
}

// An owner's webhook is told of runs whose message and session have none, in sessions that were there before, and
// no longer when it is removed. A session's webhook takes its place, and is told of an answer, signed, again with
// the same id until the receiver takes it; a message's webhook takes that one's place; a person may ask again.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		h := apptest.New(t, url, func(c *config.Config) { c.Webhooks.AllowPrivate = true })
		plain := apptest.NewSession(t, h.Client, ops.NewSession{})
		compare.Equal(t, "before", http.StatusNotFound, status(compare.ErrorOf(client.Call(t.Context(), h, ops.GetWebhook, struct{}{}))))
		at, byDefault := hookServer(t)
		for range 2 { // may be repeated
			hook, err := client.Call(t.Context(), h, ops.PutWebhook, ops.NewWebhook{URL: at, Secret: "whsec_" + hookKey})
			must.True(t, err == nil && hook.Secret == "", "got %+v, %v, want the webhook without its secret", hook, err)
		}
		asked := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: plain, Content: "What is 17 * 23?"})
		if got := <-byDefault; got.run.ID != asked.Run.ID || got.signature == "" || got.signature != got.wanted {
			t.Errorf("told: %+v, want run %s, signed", got, asked.Run.ID)
		}

		at, told := hookServer(t, http.StatusInternalServerError)
		id := apptest.NewSession(t, h.Client, ops.NewSession{Webhook: &ops.NewWebhook{URL: at, Secret: "whsec_" + hookKey}})
		asked = apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "What is 17 * 23?"})
		first, second := <-told, <-told
		for _, got := range []hooked{first, second} {
			if got.id != first.id || got.signature != got.wanted || got.kind != core.EventRunSucceeded || got.run.ID != asked.Run.ID || got.answer != asked.Answer.Content {
				t.Errorf("told: %+v, want the answer %q of run %s", got, asked.Answer.Content, asked.Run.ID)
			}
		}
		list := delivered(t, h.Client, id, asked.Run.ID)
		if len(list) != 1 || list[0].State != core.DeliveryDelivered || list[0].Attempt != 2 || string(list[0].ID) != first.id || strings.Contains(string(list[0].Target), "hush") {
			t.Errorf("deliveries: %+v, want one, delivered at the second try", list)
		}
		must.Get(client.Call(t.Context(), h, ops.RetryDelivery, ops.InDelivery{InRun: ops.InRun{RunID: asked.Run.ID}, DeliveryID: list[0].ID}))(t)
		compare.Equal(t, "asked again", first.id, (<-told).id)
		elsewhere, others := hookServer(t)
		own := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "And 19 * 23?", Webhook: &core.Webhook{URL: core.Target(elsewhere)}})
		if got := <-others; got.run.ID != own.Run.ID || got.signature != "" {
			t.Errorf("the message's own: %+v, want run %s, not signed", got, own.Run.ID)
		}
		compare.Equal(t, "what the session's and the default one were told, too", 0, len(told)+len(byDefault))

		must.Get(client.Call(t.Context(), h, ops.DeleteWebhook, struct{}{}))(t)
		asked = apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: plain, Content: "And 23 * 23?"})
		compare.Equal(t, "deliveries without a webhook", 0, len(must.Get(client.Call(t.Context(), h, ops.ListDeliveries, ops.InRun{RunID: asked.Run.ID}))(t).Items))
		strict := apptest.New(t, "sqlite://"+t.TempDir()+"/strict.db")
		_, err := client.Call(t.Context(), strict, ops.PutWebhook, ops.NewWebhook{URL: "http://example.com/hook"})
		if status(err) != http.StatusUnprocessableEntity || !strings.Contains(err.Error(), "webhooks.allow_private") {
			t.Errorf("http: got %v, want a refusal that names the setting", err)
		}
	})
}

func TestMain(m *testing.M) { apptest.Main(m) }
