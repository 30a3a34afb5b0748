package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
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
	"bobbin/tests/must"
	"bobbin/tests/pgproxy"
	"bobbin/tests/process"
	"bobbin/tests/provider"
	"bobbin/tests/seed"
)

// turnsCell is a conversation with a model at one address, in which the user writes again after a
// pause.
type turnsCell struct {
	policy, place string
	address       string
	window        int
	pause         time.Duration
	server        *provider.Server

	over, gaps int   // turns over a hard limit, and with messages left out that no summary covers
	untrue     int   // contexts shown that are larger than what can be sent, or leave out what no prompt leaves out
	summaries  int64 // calls
}

func (c *turnsCell) name() string {
	return fmt.Sprintf("%s-%s-%d-%d", c.policy, c.place, c.window, c.pause/time.Second)
}

// turnsTime is how long the model takes for an answer, summaryTime for a summary.
const (
	turnsTime   = 50 * time.Millisecond
	summaryTime = 300 * time.Millisecond
)

// A summary that is due is made, wherever the model is and however fast people write: no turn is
// over a hard limit, and nothing is left out that no summary covers. With the policy off no model is asked
// for a summary, every prompt fits, and what it leaves out is counted.
//
// 0.0.0.0 is this machine, too, but no address by which a server would be taken for a local one.
func TestShowTurns(t *testing.T) {
	t.Parallel()
	policies, windows, pauses := []string{"window", "sliding", "off"}, []int{8_192}, []time.Duration{0}
	if apptest.IsLong() {
		policies, windows = []string{"window", "budget", "sliding", "ratio", "off"}, []int{8_192, 16_384}
		pauses = append(pauses, time.Second, 3*time.Second)
	}
	var cells []*turnsCell
	settings := []apptest.Setting{}
	for _, policy := range policies {
		for _, window := range windows {
			for _, pause := range pauses {
				for i, place := range []string{"local", "remote"} {
					c := &turnsCell{policy: policy, place: place, address: []string{"127.0.0.1", "0.0.0.0"}[i], window: window, pause: pause}
					c.server = apptest.NewProvider(t, provider.Options{Window: window, Fault: func(_ http.ResponseWriter, a provider.Asked) bool {
						if a.Summary {
							<-time.After(summaryTime)
						} else {
							<-time.After(turnsTime)
						}
						return false
					}})
					cells = append(cells, c)
					settings = append(settings, c.addModel, apptest.WithAgent(c.name(),
						fmt.Sprintf("name: %s\nsystem_prompt: You answer.\nmodel: %s\ncontext:\n  policy: %s\n", c.name(), c.name(), policy)))
				}
			}
		}
	}
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), settings...)
	turns := apptest.ChooseSize(14, 120)
	for _, pause := range pauses {
		var wait sync.WaitGroup
		atOnce := make(chan struct{}, 4+6*int(pause/time.Second))
		for _, c := range cells {
			if c.pause == pause {
				wait.Go(func() {
					atOnce <- struct{}{}
					defer func() { <-atOnce }()
					c.talk(t, h, turns)
				})
			}
		}
		wait.Wait()
	}
	fig := apptest.NewTable("%d turns: over a hard limit, with messages left out that no summary covers, contexts shown that are not true, summary calls", turns)
	for i, c := range cells {
		fig.AddRow(c.name(), c.over, c.gaps, c.untrue, c.summaries)
		if c.untrue > 0 {
			t.Errorf("%s: %d contexts shown that are not true, want none", c.name(), c.untrue)
		}
		if c.policy == "off" {
			if c.over > 0 || c.gaps == 0 || c.summaries > 0 {
				t.Errorf("%s: %d turns over the window, %d with messages left out, %d summary calls; want 0, some and 0", c.name(), c.over, c.gaps, c.summaries)
			}
			continue
		}
		if c.over > 0 || c.gaps > 0 || c.summaries == 0 {
			t.Errorf("%s: %d turns over a hard limit, %d with gaps, %d summary calls; want 0, 0 and some", c.name(), c.over, c.gaps, c.summaries)
		}
		if remote := cells[i|1]; 10*c.summaries > 13*remote.summaries+20 {
			t.Errorf("%s: %d summary calls, remote %d: want at most 1.3 times as many, and two", c.name(), c.summaries, remote.summaries)
		}
	}
	fig.Log(t)
}

// addModel adds the model of the conversation.
func (c *turnsCell) addModel(cfg *config.Config) {
	cfg.Models = append(cfg.Models, config.Model{
		Name: c.name(), Provider: "openai", BaseURL: strings.Replace(c.server.URL, "127.0.0.1", c.address, 1), ContextWindow: c.window,
	})
	cfg.DefaultLLM = cfg.Models[0].Name
}

// talk has the conversation.
func (c *turnsCell) talk(t *testing.T, h *apptest.Bobbin, turns int) {
	words := apptest.NewWriter(uint64(c.window))
	id := apptest.NewSession(t, h.Client, ops.NewSession{Agent: c.name()})
	for n := range turns {
		got := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: fmt.Sprintf("Turn %d. %s", n, words.Sentences(24))})
		r := reported(t, h.Client, got.Run.ID)
		if r.Used > r.Usable || slices.ContainsFunc(r.Triggers, func(s core.TriggerStatus) bool { return s.Name == "unsummarized" && s.Fires }) {
			c.over++
		}
		if r.Coverage.LeftOut > 0 {
			c.gaps++
		}
		for range 2 { // right after the run, and before the next one
			shown, err := client.Call(t.Context(), h.Client, ops.GetContext, ops.InSession{SessionID: id})
			if err != nil {
				t.Errorf("%s, turn %d: %v", c.name(), n, err)
				return
			}
			if shown.Used > shown.Usable || shown.Coverage.LeftOut > r.Coverage.LeftOut && c.policy != "off" {
				t.Logf("%s, turn %d: %d of %d, %d left out, run %d, %v %q", c.name(), n, shown.Used, shown.Usable, shown.Coverage.LeftOut, r.Coverage.LeftOut, shown.Summarizing, shown.Reasons)
				c.untrue++
			}
			<-time.After(c.pause / 2)
		}
	}
	c.summaries = c.server.Summaries()
}

// What a plain turn may take from its request to the end of its answer, with the client's reading
// of it. A turn waits for PostgreSQL twice when its message is accepted and once when its answer
// is stored.
const (
	maxStatements = 11
	maxRoundTrips = 3
)

// The same with what follows in the background. Six statements make the messages searchable; turns
// that follow one another share them.
const (
	maxAllStatements = 20
	maxAllRoundTrips = 12
)

// A plain turn loads and stores everything once; that the agent has tools of an MCP server and of
// files takes no statement. Background loops add statements to the turns that they meet: one turn
// must do without.
func TestStatementsOfATurn(t *testing.T) {
	t.Parallel()
	for name, agent := range map[string]string{"built-in tools": "assistant", "tools of an MCP server and of HTTP": "own"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
				w := newStatementCounter(t, url, agent)
				least, waits := w.repeat(maxStatements, maxRoundTrips, w.h.App.Database.Statements)
				t.Logf("a turn takes at least %d statements, %d round trips", least, waits)
				if apptest.IsLong() { // on a busy machine loops meet every turn that waits for them
					least, waits = w.repeat(maxAllStatements, maxAllRoundTrips, func() int64 { return settledStatements(t, w.h) })
					t.Logf("and what follows: %d statements, %d round trips", least, waits)
				}
			})
		})
	}
}

// statementCounter counts what turns take.
type statementCounter struct {
	t     *testing.T
	h     *apptest.Bobbin
	id    core.SessionID
	trips func() int64
}

func newStatementCounter(t *testing.T, url, agent string) *statementCounter {
	w := &statementCounter{t: t, trips: func() int64 { return 0 }} // SQLite has none
	if strings.HasPrefix(url, "postgres") {
		proxy := pgproxy.New(t, url)
		url, w.trips = proxy.URL, proxy.RoundTrips
	}
	w.h = apptest.New(t, url, apptest.WithModel("house", 128_000, 1000, apptest.NewProvider(t, provider.Options{Pieces: 5})),
		mcpTool(t, "local", ""), withTool(t, "weather.yaml", "name: weather\nkind: http\ndescription: The weather.\nurl: https://example.com/weather\n"),
		apptest.WithAgent("own", "name: own\ntools: [local, weather, calculator]\n"))
	w.id = apptest.NewSession(t, w.h.Client, ops.NewSession{Agent: agent})
	apptest.SendMessage(t, w.h.Client, core.SendMessage{SessionID: w.id, Content: "hello"})
	return w
}

// repeat has turns until one takes no more than the limits, and fails if none of 100 does. It
// returns what the best one took.
func (w *statementCounter) repeat(statements, trips int64, count func() int64) (leastStatements, leastTrips int64) {
	w.t.Helper()
	leastStatements, leastTrips = math.MaxInt64, math.MaxInt64
	for range 100 {
		before, tripsBefore := count(), w.trips()
		apptest.ReadTurn(w.t, apptest.Send(w.t.Context(), w.h.Client, core.SendMessage{SessionID: w.id, Content: "How far is it to Oslo ?!"}))
		leastStatements, leastTrips = min(leastStatements, count()-before), min(leastTrips, w.trips()-tripsBefore)
		if leastStatements <= statements && leastTrips <= trips {
			return leastStatements, leastTrips
		}
	}
	w.t.Errorf("got at least %d statements and %d round trips a turn, want at most %d and %d", leastStatements, leastTrips, statements, trips)
	return leastStatements, leastTrips
}

// settledStatements returns the statements so far when no more follow from the last turn.
func settledStatements(t *testing.T, h *apptest.Bobbin) int64 {
	t.Helper()
	for n, quiet := h.App.Database.Statements(), 0; ; {
		apptest.PauseBriefly(t)
		now := h.App.Database.Statements()
		if quiet++; now != n {
			n, quiet = now, 0
		}
		if quiet == 20 {
			return n
		}
	}
}

// nextClients is how many clients write to a session of their own at once.
const nextClients = 64

// Clients that write as soon as an answer has ended, on a connection of their own, beside the
// indexing of what they wrote, imports and searches: nobody is told that the session, or anything
// that the last run held, is busy. Each client has all the open streams that it may have.
func TestShowNext(t *testing.T) {
	t.Parallel()
	turns := seed.Setting("BOBBIN_TEST_NEXT", apptest.ChooseSize(4*nextClients, 50_000))
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		p := apptest.NewProvider(t, provider.Options{Window: 8192})
		streams := func(c *config.Config) {
			c.Limits.RequestsPerSecond = 0
			c.Limits.OpenStreamsPerOwner = nextClients
			c.Limits.RequestMemoryBytes = 1 << 30 // the import beside them takes its share
		}
		h := apptest.New(t, url, apptest.WithModel("house", 8192, 2048, p), streams)
		plain := &http.Client{Transport: process.PatientTransport{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * nextClients}}}
		t.Cleanup(plain.CloseIdleConnections)
		c := must.Get(client.New(client.Options{URL: h.URL, HTTP: plain}))(t)
		w := &nextWorld{client: c, refused: map[string]int{}, done: map[string]int{}}
		stop := w.startLoad(t)
		began := time.Now()
		var all sync.WaitGroup
		for i := range nextClients {
			id := apptest.NewSession(t, c, ops.NewSession{})
			all.Go(func() { w.talk(t, id, i, turns/nextClients) })
		}
		all.Wait()
		took := time.Since(began)
		stop()
		fig := apptest.NewTable("%d clients that write as soon as an answer has ended, %.0f turns/s (%s)", nextClients, float64(w.done["message"])/took.Seconds(), t.Name())
		for _, what := range slices.Sorted(maps.Keys(w.done)) {
			fig.AddRow(what, w.done[what])
		}
		fig.AddRow("refused", fmt.Sprint(w.refused))
		fig.Log(t)
		for what := range w.refused { // forks have places
			compare.True(t, what == "fork quota_exceeded", "got %v, want no other refusals than of forks", w.refused)
		}
	})
}

// nextWorld is what the clients share.
type nextWorld struct {
	client *client.Client

	mu      sync.Mutex
	done    map[string]int // guarded by mu
	refused map[string]int // by what was wanted and the code; guarded by mu
}

// count counts an operation, and why it was refused.
func (w *nextWorld) count(t *testing.T, what string, err error) {
	var p *client.ProblemError
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.done[what]++
	case errors.As(err, &p) && (p.Status == http.StatusConflict || p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable):
		if w.refused[what+" "+p.Code]++; w.refused[what+" "+p.Code] == 1 {
			t.Logf("%s: %v", what, err)
		}
	default:
		t.Errorf("%s: %v", what, err)
	}
}

// talk has the turns of one session. Every 16th is followed by other writes to the session.
func (w *nextWorld) talk(t *testing.T, id core.SessionID, first, turns int) {
	ctx := t.Context()
	for n := range turns {
		question, answer, err := w.send(ctx, id, fmt.Sprintf("Question %d: what of it?", n))
		w.count(t, "message", err)
		switch (n + first) % 64 {
		case 0:
			_, err := client.Call(ctx, w.client, ops.RegenerateMessage, core.Regenerate{SessionID: id, MessageID: answer})
			w.count(t, "new answer", err)
		case 16:
			_, err := client.Call(ctx, w.client, ops.ForkSession, core.ForkSession{SessionID: id})
			w.count(t, "fork", err)
		case 32:
			_, err := client.Call(ctx, w.client, ops.SendMessage, ops.NewMessage{InSession: ops.InSession{SessionID: id}, Run: new(false), Role: core.RoleUser, Content: "By the way."})
			w.count(t, "note", err)
		case 48:
			_, err := client.Call(ctx, w.client, ops.EditMessage, ops.EditedMessage{NewMessage: ops.NewMessage{InSession: ops.InSession{SessionID: id}, Content: fmt.Sprintf("Question %d, revised", n), Run: new(false)}, MessageID: question})
			w.count(t, "revision", err)
		}
	}
}

// send sends a message and returns at the event that ends its run; the end of the response is not
// waited for.
func (w *nextWorld) send(ctx context.Context, id core.SessionID, text string) (question, answer core.MessageID, err error) {
	for e, err := range apptest.Send(ctx, w.client, core.SendMessage{SessionID: id, Content: text}) {
		if err != nil {
			return "", "", err
		}
		if d, ok := e.Data.(core.MessageData); ok && d.Message.Role == core.RoleUser {
			question = d.Message.ID
		} else if ok {
			answer = d.Message.ID
		}
		switch {
		case e.Type == core.EventRunSucceeded:
			return question, answer, nil
		case e.Type.EndsRun():
			return "", "", errors.New(string(e.Type))
		}
	}
	return "", "", io.ErrUnexpectedEOF
}

// startLoad imports histories into other sessions and searches, until stop is called.
func (w *nextWorld) startLoad(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	id := apptest.NewSession(t, w.client, ops.NewSession{})
	all.Go(func() {
		for ctx.Err() == nil {
			_, err := w.client.ImportMessages(ctx, core.ImportMessages{SessionID: id, Body: strings.NewReader(history(400)), Format: core.ImportLines})
			if ctx.Err() == nil {
				w.count(t, "import", err)
			}
		}
	})
	all.Go(func() {
		for ctx.Err() == nil {
			_, _ = client.Call(ctx, w.client, ops.Search, core.SearchQuery{Text: "question"}) // it may take too long: it is only load
		}
	})
	return func() {
		cancel()
		all.Wait()
	}
}
