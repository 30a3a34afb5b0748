package slack_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
	"bobbin/tests/seed"
)

// barriers hold answers to questions with certain words.
type barriers struct {
	mu   sync.Mutex
	held map[string]barrier // guarded by mu
}

// barrier is closed until the test opens it.
type barrier struct{ asked, open chan struct{} }

// hold waits for the barrier of the question, if it has one.
func (g *barriers) hold(question string) {
	g.mu.Lock()
	var found barrier
	for mark, one := range g.held {
		if strings.Contains(question, mark) {
			found = one
			delete(g.held, mark)
		}
	}
	g.mu.Unlock()
	if found.asked != nil {
		close(found.asked)
		<-found.open
	}
}

func (g *barriers) add(mark string) barrier {
	g.mu.Lock()
	defer g.mu.Unlock()
	one := barrier{make(chan struct{}), make(chan struct{})}
	g.held[mark] = one
	return one
}

// slackLine is a user's message of a thread.
type slackLine struct {
	mark    string // a word that only its text has
	ts      string // in Slack, if it was written there
	post    string // ts of our post, if it was written on the web
	id      core.MessageID
	deleted bool
}

// thread is a thread of Slack whose messages are edited and deleted at random.
type thread struct {
	workspace

	t        *testing.T
	r        *rand.Rand
	model    *provider.Server
	barriers *barriers
	session  core.SessionID
	root     string
	lines    []*slackLine // in the order of the log
	gone     []string
	n        int
}

// newMark returns a word that no text has.
func (th *thread) newMark() string {
	th.n++
	return fmt.Sprintf("mark%sx%dx", strings.ToLower(th.channel), th.n)
}

// sentence is a text with the mark.
func sentence(mark string) string { return mark + strings.Repeat(" the pump is red", 80) }

// say writes a message in Slack. It may wait for its turn.
func (th *thread) say(mark string) *slackLine {
	th.t.Helper()
	text := sentence(mark)
	if th.root == "" {
		text = th.mention(text)
	}
	l := &slackLine{mark: mark, ts: th.post(th.t, th.alice, th.root, text)}
	th.lines = append(th.lines, l)
	return l
}

// sayOnWeb writes a message on the web and waits for its post in Slack.
func (th *thread) sayOnWeb(mark string) {
	th.t.Helper()
	in := core.SendMessage{SessionID: th.session, Content: sentence(mark), Source: core.SourceWeb, Author: "Bob"}
	run, err := th.house.SendAsync(th.t.Context(), in)
	if err != nil {
		th.t.Fatal(err)
	}
	l := &slackLine{mark: mark, id: run.UserMessageID}
	th.lines = append(th.lines, l)
	th.awaitSlack("the post of "+mark, func() bool {
		for _, m := range th.ws.Thread(th.channel, th.root) {
			if strings.Contains(m.Markdown(), mark) {
				l.post = m.TS
			}
		}
		return l.post != ""
	})
}

// awaitSlack waits until the condition holds in Slack.
func (th *thread) awaitSlack(what string, holds func() bool) {
	th.t.Helper()
	if err := th.Wait(th.t.Context(), holds); err != nil {
		th.t.Fatalf("%s: %v", what, err)
	}
}

// holdRun starts a run whose answer waits until the returned function is called.
func (th *thread) holdRun() (release func()) {
	th.t.Helper()
	mark := th.newMark()
	g := th.barriers.add(mark)
	th.say(mark)
	select {
	case <-g.asked:
	case <-time.After(time.Minute):
		th.t.Fatal("the model was not asked within a minute")
	}
	return func() { close(g.open) }
}

// pick returns one of the messages; with slack one that was written there.
func (th *thread) pick(slack bool) *slackLine {
	there := slices.DeleteFunc(slices.Clone(th.lines), func(l *slackLine) bool { return l.deleted || slack && l.ts == "" })
	return there[th.r.IntN(len(there))]
}

// change edits or deletes a message where it was written.
func (th *thread) change(l *slackLine, when string) {
	th.t.Helper()
	old, what, where := l.mark, "edited", "Slack"
	if l.deleted = th.r.IntN(3) == 0 && l.ts != th.root; l.deleted {
		what = "deleted"
	} else {
		l.mark = th.newMark()
	}
	var err error
	switch {
	case l.ts != "" && l.deleted:
		err = th.alice.Delete(th.channel, l.ts)
	case l.ts != "":
		err = th.alice.Edit(th.channel, l.ts, sentence(l.mark))
	case l.deleted:
		where, err = "web", th.house.DeleteMessage(th.t.Context(), th.session, l.id)
	default:
		where = "web"
		_, err = th.house.ReviseMessage(th.t.Context(), th.session, l.id, sentence(l.mark))
	}
	if err != nil {
		th.t.Fatalf("%s %s: %v", what, where, err)
	}
	th.gone = append(th.gone, old)
}

// step changes a message before, in or after a run, and checks what is left of it.
func (th *thread) step() {
	th.t.Helper()
	switch th.r.IntN(3) {
	case 0:
		release := th.holdRun()
		queued := th.say(th.newMark())
		th.awaitQueued(queued)
		th.change(queued, "before its run")
		release()
	case 1:
		release := th.holdRun()
		th.change(th.pick(true), "in a run")
		release()
	default:
		th.change(th.pick(false), "after its run")
	}
	th.settle()
	th.checkGone()
	th.ask()
	if _, err := th.house.Summarize(th.t.Context(), th.session, ""); err != nil && !errors.Is(err, core.ErrUnprocessable) && !errors.Is(err, core.ErrConflict) { // there is nothing to summarize, or that is done already
		th.t.Fatal(err)
	}
}

// settle waits until session and thread show the messages as they are now.
func (th *thread) settle() {
	th.t.Helper()
	want := slices.DeleteFunc(slices.Clone(th.lines), func(l *slackLine) bool { return l.deleted })
	for limit := time.Now().Add(2 * time.Minute); ; apptest.PauseBriefly(th.t) {
		idle := th.isIdle() // before the list is read, and after
		all := slices.DeleteFunc(th.list().Items, func(m core.Message) bool { return m.Role != core.RoleUser })
		same := slices.EqualFunc(all, want, func(m core.Message, l *slackLine) bool {
			return strings.HasPrefix(m.Content, l.mark) && (l.id == "" || l.id == m.ID)
		})
		if idle && same && th.isIdle() {
			for i, m := range all {
				want[i].id = m.ID
			}
			break
		}
		if time.Now().After(limit) {
			th.t.Fatalf("got %q, want the marks of %d messages", contents(all, core.RoleUser), len(want))
		}
	}
	th.awaitSlack("the posts", th.postsFit)
}

// isIdle reports whether the session has no run.
func (th *thread) isIdle() bool {
	th.t.Helper()
	session, err := th.house.Session(th.t.Context(), th.session)
	if err != nil {
		th.t.Fatal(err)
	}
	return session.Status == core.SessionIdle
}

// list returns the messages of the session, and those that are queued.
func (th *thread) list() client.MessagePage {
	th.t.Helper()
	page, err := th.house.Messages(th.t.Context(), th.session, core.MessageQuery{PageQuery: core.PageQuery{Limit: core.MaxPageLimit}, AllBranches: true})
	if err != nil {
		th.t.Fatal(err)
	}
	return page
}

// awaitQueued waits until the message is queued.
func (th *thread) awaitQueued(l *slackLine) {
	th.t.Helper()
	for limit := time.Now().Add(time.Minute); ; apptest.PauseBriefly(th.t) {
		if slices.ContainsFunc(th.list().Pending, func(m core.Message) bool { return strings.HasPrefix(m.Content, l.mark) }) {
			return
		}
		if time.Now().After(limit) {
			th.t.Fatalf("%s is not queued within a minute", l.mark)
		}
	}
}

// postsFit reports whether the posts of messages from the web say what these say.
func (th *thread) postsFit() bool {
	texts := map[string]string{}
	for _, m := range th.ws.Thread(th.channel, th.root) {
		texts[m.TS] = m.Markdown()
	}
	for _, l := range th.lines {
		if _, there := texts[l.post]; l.post != "" && (there == l.deleted || there && !strings.HasPrefix(texts[l.post], l.mark)) {
			return false
		}
	}
	return true
}

// checkGone looks for what was replaced or deleted in the prompt, the list of messages, the
// summaries, the search, and the thread.
func (th *thread) checkGone() {
	th.t.Helper()
	prompt, err := th.house.Prompt(th.t.Context(), th.session)
	if err != nil {
		th.t.Fatal(err)
	}
	versions, err := th.house.Summaries(th.t.Context(), th.session, core.PageQuery{Limit: core.MaxPageLimit})
	if err != nil {
		th.t.Fatal(err)
	}
	th.checkText("the prompt", prompt)
	th.checkText("the messages", th.list())
	th.checkText("the summaries", versions.Items)
	th.checkText("the thread", th.ws.Thread(th.channel, th.root))
	mark := th.gone[len(th.gone)-1]
	found, err := th.house.Search(th.t.Context(), core.SearchQuery{Text: mark, AllBranches: true})
	if err != nil || len(found.Items) > 0 {
		th.t.Errorf("search: got %+v, error %v, want nothing of %s", found.Items, err, mark)
	}
}

// checkText looks for what is gone in a value.
func (th *thread) checkText(what string, v any) {
	th.t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		th.t.Fatal(err)
	}
	for _, mark := range th.gone {
		if strings.Contains(string(data), mark) {
			th.t.Errorf("%s: %s is left", what, mark)
		}
	}
}

// ask has a turn, in Slack or on the web, whose prompts must have nothing of what is gone.
func (th *thread) ask() {
	th.t.Helper()
	mark := th.newMark()
	if th.r.IntN(2) == 0 {
		th.say(mark)
	} else {
		th.sayOnWeb(mark)
	}
	th.settle()
	for _, r := range th.model.Received() {
		if last := r.Messages[len(r.Messages)-1]; strings.Contains(last.Text, mark) {
			th.checkText("a prompt that was sent", r.Messages)
			th.checkText("the system prompt that was sent", r.System)
		}
	}
}

// What is edited or deleted in Slack or on the web, before, in or after runs, is gone from
// prompts, lists, summaries and the search, and changes in place on the other side.
func TestSlackEdits(t *testing.T) {
	t.Parallel()
	threads, steps := apptest.ChooseSize(2, 8), apptest.ChooseSize(4, 25)
	g := &barriers{held: map[string]barrier{}}
	model, err := provider.New(provider.Options{Window: 2048, Record: true, Hold: g.hold, Say: func(string) string { return "the pump" }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Close)
	w := newWorkspace(t, func(s ...apptest.Setting) *apptest.Bobbin { return apptest.New(t, dbtest.MigratedSQLiteURL(t), s...) },
		apptest.WithModel("small", 2048, 128, model), apptest.WithAgent("plain", "name: plain\nsystem_prompt: You answer.\n"),
		func(c *config.Config) { c.Slack.Agent = "plain" })
	var all []*thread
	for i := range threads {
		random := seed.Fixed(uint64(i), 14) // which changes messages that a summary covers
		if seed.IsChosen() {
			random = seed.Rand(t, uint64(i))
		}
		th := &thread{workspace: *w, t: t, r: random, model: model, barriers: g}
		th.channel = w.ws.AddChannel(fmt.Sprintf("E%d", i+1), fmt.Sprintf("edits-%d", i+1)).ID
		th.root = th.say(th.newMark()).ts
		known := w.sessions(t, "the session", func(list []core.Session) bool { return len(list) == i+1 })
		th.session = known[slices.IndexFunc(known, func(s core.Session) bool {
			return !slices.ContainsFunc(all, func(other *thread) bool { return other.session == s.ID })
		})].ID
		all = append(all, th)
	}
	t.Run("threads", func(t *testing.T) {
		for _, th := range all {
			t.Run(th.channel, func(t *testing.T) {
				t.Parallel()
				th.t = t
				th.settle()
				for range steps {
					th.step()
				}
			})
		}
	})
	wantErased(t, all)
}

// wantErased fails the test if no summary covered what was edited or deleted: nothing was tested.
func wantErased(t *testing.T, all []*thread) {
	t.Helper()
	for _, th := range all {
		versions, err := th.house.Summaries(t.Context(), th.session, core.PageQuery{Limit: core.MaxPageLimit})
		if err != nil && !errors.Is(err, core.ErrNotFound) {
			t.Fatal(err)
		}
		if slices.ContainsFunc(versions.Items, func(v core.Summary) bool { return v.State == core.SummaryErased }) {
			return
		}
	}
	if !seed.IsChosen() {
		t.Error("got no erased summary")
	}
}
