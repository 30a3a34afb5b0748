package slack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/app/events"
	"bobbin/app/slack"
)

// thread is the ts of the first message of the thread of the tests.
const thread = "1000.000001"

// slackServer is a Slack with one channel.
type slackServer struct {
	*httptest.Server

	mu      sync.Mutex
	changed chan struct{}
	posts   []*slackPost
	private []string                                                             // shown to one user: user and text
	calls   map[string]int                                                       // by method
	started []string                                                             // for whom streams were to be started: team and user
	fault   func(method string, call int, work func()) (status int, body string) // nil = none; status 0 = none, -1 = the connection breaks
}

type slackPost struct {
	TS, Thread, Delivery string
	Markdown             string // the text of the markdown blocks
	Blocks               string
	Streaming, Streamed  bool
	Deleted              bool
	Tasks                []string
	Edits                int
}

func newSlackServer(t *testing.T) *slackServer {
	t.Helper()
	s := &slackServer{changed: make(chan struct{}), calls: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *slackServer) serve(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	method := strings.TrimPrefix(r.URL.Path, "/api/")
	s.mu.Lock()
	s.calls[method]++
	if method == "chat.startStream" {
		s.started = append(s.started, r.Form.Get("recipient_team_id")+"/"+r.Form.Get("recipient_user_id"))
	}
	call, fault := s.calls[method], s.fault
	s.mu.Unlock()
	work := func() map[string]any {
		s.mu.Lock()
		defer s.mu.Unlock()
		defer func() {
			close(s.changed)
			s.changed = make(chan struct{})
		}()
		return s.work(method, r)
	}
	if fault != nil {
		switch status, body := fault(method, call, func() { work() }); {
		case status < 0:
			panic(http.ErrAbortHandler)
		case status > 0:
			if status == http.StatusTooManyRequests {
				w.Header().Set("Retry-After", body)
			}
			http.Error(w, body, status)
			return
		case body != "":
			if strings.Contains(body, "message_not_in_streaming_state") {
				s.endStreams()
			}
			_, _ = w.Write([]byte(body))
			return
		}
	}
	_ = json.NewEncoder(w).Encode(work())
}

// endStreams ends all streams, as Slack does after five minutes.
func (s *slackServer) endStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.posts {
		p.Streaming = false
	}
}

// work carries a call out. The caller holds mu.
func (s *slackServer) work(method string, r *http.Request) map[string]any {
	answer := map[string]any{"ok": true, "channel": "C1"}
	refuse := func(code string) map[string]any { return map[string]any{"ok": false, "error": code} }
	at := slices.IndexFunc(s.posts, func(p *slackPost) bool { return p.TS == r.Form.Get("ts") && !p.Deleted })
	switch method {
	case "chat.postMessage", "chat.startStream":
		p := &slackPost{TS: fmt.Sprintf("1000.%06d", len(s.posts)+2), Thread: r.Form.Get("thread_ts")}
		p.Streaming = method == "chat.startStream"
		p.Streamed = p.Streaming
		p.fill(r)
		s.posts = append(s.posts, p)
		answer["ts"] = p.TS
	case "chat.update", "chat.appendStream", "chat.stopStream", "chat.delete":
		if at < 0 {
			return refuse("message_not_found")
		}
		p := s.posts[at]
		answer["ts"] = p.TS
		switch {
		case method == "chat.delete":
			p.Deleted = true
		case method == "chat.update" && p.Streaming:
			return refuse("streaming_state_conflict")
		case method == "chat.update":
			p.Edits++
			p.fill(r)
		case !p.Streaming:
			return refuse("message_not_in_streaming_state")
		default:
			p.fill(r)
			p.Streaming = method != "chat.stopStream"
		}
	case "chat.postEphemeral":
		s.private = append(s.private, r.Form.Get("user")+": "+r.Form.Get("text"))
	case "conversations.replies":
		var list []map[string]any
		for _, p := range s.posts {
			if p.Deleted || p.TS <= r.Form.Get("oldest") {
				continue
			}
			m := map[string]any{"ts": p.TS, "bot_id": "B1", "text": "x"}
			if p.Delivery != "" {
				m["metadata"] = map[string]any{"event_type": slack.MetadataEvent, "event_payload": map[string]any{"delivery_id": p.Delivery}}
			}
			list = append(list, m)
		}
		answer["messages"] = list
	case "auth.test":
		answer["bot_id"], answer["team_id"] = "B1", "T1"
	default:
		return refuse("unknown_method")
	}
	return answer
}

// fill takes what a call says.
func (p *slackPost) fill(r *http.Request) {
	var metadata struct {
		Payload struct {
			ID string `json:"delivery_id"`
		} `json:"event_payload"`
	}
	if json.Unmarshal([]byte(r.Form.Get("metadata")), &metadata) == nil {
		p.Delivery = metadata.Payload.ID
	}
	var blocks []struct{ Type, Text string }
	if raw := r.Form.Get("blocks"); raw != "" && json.Unmarshal([]byte(mapTexts(raw)), &blocks) == nil {
		p.Blocks = raw
		if !p.Streamed || strings.HasSuffix(r.URL.Path, "update") {
			p.Markdown = ""
			for _, b := range blocks {
				if b.Type == "markdown" {
					p.Markdown += b.Text
				}
			}
		}
	}
	p.Markdown += r.Form.Get("markdown_text")
	var chunks []struct{ Type, Text, ID, Title, Status string }
	if json.Unmarshal([]byte(r.Form.Get("chunks")), &chunks) == nil {
		for _, c := range chunks {
			if c.Type == "markdown_text" {
				p.Markdown += c.Text
			} else {
				p.Tasks = append(p.Tasks, c.Title+" "+c.Status)
			}
		}
	}
}

// mapTexts makes texts that are objects plain ones.
func mapTexts(raw string) string {
	var blocks []map[string]any
	if json.Unmarshal([]byte(raw), &blocks) != nil {
		return raw
	}
	for _, b := range blocks {
		if object, ok := b["text"].(map[string]any); ok {
			b["text"] = object["text"]
		}
	}
	out, _ := json.Marshal(blocks)
	return string(out)
}

// list returns the posts that are there.
func (s *slackServer) list() []slackPost {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []slackPost
	for _, p := range s.posts {
		if !p.Deleted {
			list = append(list, *p)
		}
	}
	return list
}

// delete removes a post as its app does not.
func (s *slackServer) delete(ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.posts {
		p.Deleted = p.Deleted || p.TS == ts
	}
}

func (s *slackServer) setFault(f func(method string, call int, work func()) (int, string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// await waits until the condition holds.
func (s *slackServer) await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if condition() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%s: never happened; the posts are %+v", what, s.list())
		}
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
	posts   core.SlackPostStore

	outboxes []*slack.Outbox // that were started
}

func ann() core.Tenant { return core.Tenant{Owner: "ann"} }

// newWorld returns a session that is bound to the thread, which nobody posts to yet.
func newWorld(t *testing.T, d *db.DB) *world {
	t.Helper()
	w := &world{
		slack: newSlackServer(t), db: d, runs: repositories.NewRuns(d.Gorm), feed: events.New(events.NewLocal(0), repositories.NewEvents(d.Gorm), slog.New(slog.DiscardHandler)),
		threads: repositories.NewSlackThreads(d.Gorm), posts: repositories.NewSlackPosts(d.Gorm),
	}
	var err error
	if w.session, err = repositories.NewSessions(d.Gorm).Create(t.Context(), core.Session{Owner: "ann", Agent: "a", UserID: "slack:T1/U1"}); err != nil {
		t.Fatal(err)
	}
	w.bind(t, w.session.ID, "C1", thread)
	return w
}

func (w *world) bind(t *testing.T, session core.SessionID, channel, ts string) {
	t.Helper()
	_, err := w.threads.Bind(t.Context(), core.SlackThread{SessionID: session, Owner: "ann", Team: "T1", Channel: channel, Thread: ts, Mode: core.SlackTwoWay})
	if err != nil {
		t.Fatal(err)
	}
}

// newClients returns the clients of settings without installations.
func newClients(t *testing.T, settings config.Slack) *slack.Clients {
	t.Helper()
	clients, err := slack.NewClients(settings, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

// start lets a process of the name post; stop ends it.
func (w *world) start(t *testing.T, name string, change ...func(*slack.OutboxOptions)) (stop func()) {
	t.Helper()
	o := slack.OutboxOptions{
		Threads: w.threads, Posts: w.posts, Sessions: repositories.NewSessions(w.db.Gorm), Messages: repositories.NewMessages(w.db.Gorm), Feed: w.feed,
		Clients: newClients(t, config.Slack{BotToken: config.NewSecret("xoxb-1"), APIURL: w.slack.URL + "/api"}), Worker: name, Logger: slog.New(slog.DiscardHandler),
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
		if err := <-done; err != nil {
			t.Errorf("Run: got error %v, want nil", err)
		}
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
	a, err := w.runs.Accept(t.Context(), ann(), core.AcceptRun{SessionID: session, Agent: "a", Worker: "w", Input: in})
	if err != nil {
		t.Fatal(err)
	}
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
	out, err := w.runs.Write(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
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
