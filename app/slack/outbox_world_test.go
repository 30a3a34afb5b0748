package slack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/app/events"
	"bobbin/app/slack"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/slackfake/fakeslack"
)

// The workspace, and the ts of the first message of a thread in C1 and in C2.
const (
	team        = "T00000001"
	thread      = "1000.000000"
	otherThread = "1000.000001"
)

// slackServer is the fake Slack with a workspace.
type slackServer struct {
	*fakeslack.Server

	ws    *fakeslack.Workspace
	ann   *fakeslack.User
	token string
	clock atomic.Int64 // seconds
}

type slackPost struct {
	TS, Thread, Delivery string
	Markdown             string // the text of the markdown blocks
	Blocks               string
	Streaming, Streamed  bool
	Tasks                []string
}

func newSlackServer(t *testing.T) *slackServer {
	t.Helper()
	s := &slackServer{}
	s.clock.Store(1000)
	var err error
	if s.Server, err = fakeslack.New(fakeslack.Options{Now: func() time.Time { return time.Unix(s.clock.Load(), 0) }}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	s.ws = s.AddWorkspace("acme")
	s.token, s.ann = s.ws.Install(), s.ws.AddUser("Ann", "")
	for _, first := range []struct{ channel, ts string }{{"C1", thread}, {"C2", otherThread}} {
		s.ws.AddChannel(first.channel, first.channel)
		if ts, err := s.ann.Post(first.channel, "first"); err != nil || ts != first.ts {
			t.Fatalf("got the ts %s, %v, want %s", ts, err, first.ts)
		}
	}
	return s
}

// disturb replaces the faults. Those of a method hold for its calls in turn.
func (s *slackServer) disturb(faults ...fakeslack.Fault) {
	s.ClearFaults()
	for _, f := range faults {
		s.Inject(f)
	}
}

// noReplies is a Slack that does not let threads be read.
func noReplies() fakeslack.Fault {
	return fakeslack.Fault{Method: "conversations.replies", Error: "missing_scope"}
}

// list returns the posts that are there.
func (s *slackServer) list() []slackPost {
	var list []slackPost
	for _, m := range append(s.ws.Posts("C1"), s.ws.Posts("C2")...) {
		list = append(list, newSlackPost(m))
	}
	slices.SortFunc(list, func(a, b slackPost) int { return strings.Compare(a.TS, b.TS) })
	return list
}

func newSlackPost(m fakeslack.Message) slackPost {
	var metadata struct {
		Payload struct {
			ID string `json:"delivery_id"`
		} `json:"event_payload"`
	}
	_ = json.Unmarshal(m.Metadata, &metadata) // none: a stream that grows
	p := slackPost{TS: m.TS, Thread: m.ThreadTS, Delivery: metadata.Payload.ID, Blocks: string(m.Blocks), Streamed: m.Stream != nil}
	if p.Streamed {
		p.Streaming = m.Stream.Open && m.Edited == nil
		for _, task := range m.Stream.Tasks {
			p.Tasks = append(p.Tasks, task.Title+" "+task.Status)
		}
		if m.Edited == nil {
			p.Markdown = m.Text
			return p
		}
	}
	var blocks []struct {
		Type string
		Text json.RawMessage
	}
	_ = json.Unmarshal(m.Blocks, &blocks) // none
	for _, b := range blocks {
		var text string
		if b.Type == "markdown" && json.Unmarshal(b.Text, &text) == nil {
			p.Markdown += text
		}
	}
	return p
}

// delete removes a post as its app does not.
func (s *slackServer) delete(t *testing.T, ts string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/chat.delete", strings.NewReader(url.Values{"token": {s.token}, "channel": {"C1"}, "ts": {ts}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	s.ServeHTTP(httptest.NewRecorder(), r)
}

// await waits until the condition holds.
func (s *slackServer) await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Wait(ctx, condition); err != nil {
		t.Fatalf("%s: never happened; the posts are %+v", what, s.list())
	}
}

// texts returns what the posts say.
func (s *slackServer) texts() []string {
	var texts []string
	for _, p := range s.list() {
		texts = append(texts, p.Markdown)
	}
	return texts
}

// awaitTexts waits until the posts say exactly these things.
func (s *slackServer) awaitTexts(t *testing.T, want ...string) {
	t.Helper()
	s.await(t, fmt.Sprintf("the posts %q", want), func() bool { return slices.Equal(s.texts(), want) })
}

// world is a session with a thread.
type world struct {
	slack   *slackServer
	db      *db.DB
	feed    *events.Feed
	runs    *repositories.Runs
	session core.Session
	threads *repositories.SlackThreads
	posts   *repositories.SlackPosts

	outboxes []*slack.Outbox // that were started
}

func ann() core.Tenant { return core.Tenant{Owner: "ann"} }

// inWorld runs test in a world on each database, beside the other tests.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) { test(t, newWorld(t, d)) })
}

// newWorld returns a session that is bound to the thread, which nobody posts to yet.
func newWorld(t *testing.T, d *db.DB) *world {
	t.Helper()
	w := &world{
		slack: newSlackServer(t), db: d, runs: repositories.NewRuns(d.Gorm), feed: events.New(events.NewLocal(0), repositories.NewEvents(d.Gorm), slog.New(slog.DiscardHandler)),
		threads: repositories.NewSlackThreads(d.Gorm), posts: repositories.NewSlackPosts(d.Gorm),
	}
	var err error
	if w.session, err = repositories.NewSessions(d.Gorm).Create(t.Context(), core.Session{Owner: "ann", Agent: "a", UserID: "slack:" + team + "/" + w.slack.ann.ID}); err != nil {
		t.Fatal(err)
	}
	w.bind(t, w.session.ID, "C1", thread)
	return w
}

func (w *world) bind(t *testing.T, session core.SessionID, channel, ts string) {
	t.Helper()
	must.Get(w.threads.Bind(t.Context(), core.SlackThread{SessionID: session, Owner: "ann", Team: team, Channel: channel, Thread: ts, Mode: core.SlackTwoWay}))(t)
}

// newClients returns the clients of settings without installations.
func newClients(t *testing.T, settings config.Slack) *slack.Clients {
	t.Helper()
	return must.Get(slack.NewClients(settings, nil))(t)
}

// start lets a process of the name post; stop ends it.
func (w *world) start(t *testing.T, name string, change ...func(*slack.OutboxOptions)) (stop func()) {
	t.Helper()
	o := slack.OutboxOptions{
		Threads: w.threads, Posts: w.posts, Sessions: repositories.NewSessions(w.db.Gorm), Messages: repositories.NewMessages(w.db.Gorm), Feed: w.feed,
		Clients: newClients(t, config.Slack{BotToken: config.NewSecret(w.slack.token), APIURL: w.slack.APIURL()}), Worker: name, Logger: slog.New(slog.DiscardHandler),
		Pause: time.Millisecond, Settle: 10 * time.Millisecond,
	}
	for _, f := range change {
		f(&o)
	}
	service := slack.NewOutbox(o)
	w.outboxes = append(w.outboxes, service)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- service.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		compare.Error(t, "Run", nil, <-done)
	})
	t.Cleanup(stop)
	return stop
}

// ask accepts a message from the web and returns its run.
func (w *world) ask(t *testing.T, text string) core.Run {
	t.Helper()
	return w.askIn(t, w.session.ID, core.RunInput{Content: text, Source: core.SourceWeb, Author: "Ann\n*Lee*"})
}

func (w *world) askIn(t *testing.T, session core.SessionID, in core.RunInput) core.Run {
	t.Helper()
	a := must.Get(w.runs.Accept(t.Context(), ann(), core.AcceptRun{SessionID: session, Agent: "a", Worker: "w", Input: in}))(t)
	w.feed.Publish(t.Context(), a.Events)
	return a.Run
}

// answer ends the run with an answer.
func (w *world) answer(t *testing.T, run core.Run, text string) core.Message {
	t.Helper()
	m := core.Message{ID: run.DraftID(run.Attempt, 0), Role: core.RoleAssistant, Content: text, Source: core.SourceWeb}
	out := w.write(t, core.RunWrite{
		RunID: run.ID, SessionID: run.SessionID, Attempt: run.Attempt, Messages: []core.Message{m}, End: &core.RunEnd{Status: core.RunSucceeded, AnswerID: m.ID},
	})
	return out.Messages[0]
}

func (w *world) write(t *testing.T, in core.RunWrite) core.Written {
	t.Helper()
	out := must.Get(w.runs.Write(t.Context(), in))(t)
	w.feed.Publish(t.Context(), out.Events)
	return out
}

// turn is a question with its answer.
func (w *world) turn(t *testing.T, n int) {
	t.Helper()
	w.answer(t, w.ask(t, "question "+strconv.Itoa(n)), "answer "+strconv.Itoa(n))
}

// turnTexts are the texts of so many turns.
func turnTexts(n int) []string {
	var texts []string
	for i := range n {
		texts = append(texts, "question "+strconv.Itoa(i), "answer "+strconv.Itoa(i))
	}
	return texts
}
