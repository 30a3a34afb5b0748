package compaction_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
	"bobbin/tests/coretest"
	"bobbin/tests/must"
)

// view is Prompt, which must succeed.
func (w *world) view() core.PromptView {
	w.t.Helper()
	return must.Get(w.control().Prompt(w.t.Context(), w.scope(), w.Session.ID, core.PlanPreview{}))(w.t)
}

// messages returns the view's messages as they would be sent.
func messages(v core.PromptView) []llm.Message {
	out := []llm.Message{}
	for _, m := range v.Messages {
		out = append(out, llm.Message{Role: m.Role, Content: m.Content, ToolCalls: m.ToolCalls, ToolCallID: m.ToolCallID})
	}
	return out
}

// same fails unless the report and the view say exactly what the request sends.
func (w *world) same(r core.ContextReport, v core.PromptView, req llm.Request, d contextwindow.Decision) {
	w.t.Helper()
	compare.Equal(w.t, "messages", req.Messages, messages(v))
	compare.Equal(w.t, "system blocks", req.System, v.System)
	messages, tokens := 0, w.size(req)
	for _, m := range v.Messages {
		messages += m.Tokens
	}
	for what, pair := range map[string][2]int{
		"planned": {d.Total, r.Planned}, "tokens": {r.Used, v.Tokens}, "output limit": {req.MaxOutputTokens, v.MaxOutputTokens},
		"reported output limit": {req.MaxOutputTokens, r.MaxOutput}, "tools": {len(req.Tools), len(v.Tools)},
		"messages": {len(w.Messages), r.Coverage.Messages}, "window": {r.Window, r.Used + r.Reserve + r.Free},
	} {
		if pair[0] != pair[1] {
			w.t.Errorf("%s: sent %d, shown %d", what, pair[0], pair[1])
		}
	}
	sum := 0
	for _, s := range r.Sections {
		sum += s.Tokens
	}
	if rounding := abs(r.Used - d.Shown(tokens)); rounding > len(r.Sections)/2 || r.Used > r.Planned {
		w.t.Errorf("used %d of %d planned, sent are %d", r.Used, r.Planned, d.Shown(tokens))
	}
	if messages != r.Sections[4].Tokens+r.Sections[5].Tokens {
		w.t.Errorf("the messages have %d tokens, the sections %+v", messages, r.Sections)
	}
	parts := map[string]int{} // by section; the rest of system and tools belongs to no text
	for _, b := range v.SystemParts {
		parts[b.Name] += b.Tokens
	}
	for _, m := range v.Messages {
		parts[m.Section] += m.Tokens
	}
	for _, s := range r.Sections {
		counted := s.Name != "system" && s.Name != "tools" && s.Name != "reserve" && s.Name != "free"
		if got := parts[s.Name]; counted && abs(got-s.Tokens) > 1 || got > s.Tokens {
			w.t.Errorf("the texts of section %s have %d tokens, the section %d", s.Name, got, s.Tokens)
		}
	}
	if len(v.SystemParts) != len(v.System) {
		w.t.Errorf("got the sizes of %d system blocks, want %d", len(v.SystemParts), len(v.System))
	}
	if sum != r.Window {
		w.t.Errorf("the sections have %d tokens together, want the window, %d: %+v", sum, r.Window, r.Sections)
	}
}

func abs(n int) int { return max(n, -n) }

// A prompt that will not be sent as it stands says so: the next message first summarizes. What is
// shown is the prompt before that, as far as it fits; the others are those that will be summarized.
func TestShownBeforeASummary(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 8192)
	w.turns(30, 115) // over usable, as after a switch to a smaller model
	r, v := w.report(), w.view()
	if !r.WillTrigger || r.Used != v.Tokens || r.Used > r.Usable || r.Coverage.LeftOut > 0 || r.Coverage.Summarized == 0 {
		t.Errorf("got used %d of %d, %d left out, will trigger %v, want what fits", r.Used, r.Usable, r.Coverage.LeftOut, r.WillTrigger)
	}
	w.writer.Add(notes)
	w.ask("next")
	w.fit()
	// The plan did not know the new message, which may need one turn more.
	want := fmt.Sprintf("the next message first summarizes the oldest %d messages (share)", w.Summaries[0].MessagesAdded)
	if got := strings.Join(r.Reasons, "\n"); !strings.Contains(got, want) {
		t.Errorf("got reasons %q, want %q", got, want)
	}
	if v.Note != want {
		t.Errorf("got note %q of the prompt, want %q", v.Note, want)
	}
	if now := w.view(); now.Note != "" {
		t.Errorf("got note %q of a prompt that is sent as it is, want none", now.Note)
	}
}

// The coverage is of one moment: what is appended while it is computed is not in it, and not lost.
func TestReportWhileMessagesAreAppended(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 8192)
	w.turns(2, 10)
	w.db.Before(func(method string) error {
		if method == "CountOnPath" {
			w.turns(1, 10)
		}
		return nil
	})
	if r := w.report(); r.Coverage.Messages != 4 || r.Coverage.Verbatim != 4 || len(w.Messages) != 6 {
		t.Errorf("got coverage %+v, %d messages now, want the first four verbatim, of six", r.Coverage, len(w.Messages))
	}
}

// Pins count in the floor, and are refused where they would leave no room to land.
func TestCheckPin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 8192)
	w.turns(4, 100)
	small := w.said(core.RoleUser, "remember this")
	large := w.said(core.RoleUser, "remember this")
	large.TokenCount = 4000
	check := func(m core.Message) error { return w.control().CheckPin(t.Context(), w.scope(), w.Session.ID, m) }
	compare.Error(t, "a small one: want no error", nil, check(small))
	err := check(large)
	if !errors.Is(err, core.ErrContextFloor) || !strings.Contains(err.Error(), "unpin another message") {
		t.Errorf("a large one: got %v, want ErrContextFloor and what to do", err)
	}
	// Many small ones are refused in the end, too.
	pinned := 0
	for check(medium(w)) == nil && pinned < 100 {
		m := medium(w)
		m.Pinned = true
		w.add(m)
		pinned++
	}
	if pinned == 0 || pinned == 100 {
		t.Errorf("got %d pins accepted, want some", pinned)
	}
	w.ask("and now?")
	if turn, d := w.fit(); d.Floor != nil || len(turn.Run) == 0 {
		t.Errorf("got the floor %v with %d pins, want a prompt", d.Floor, pinned)
	}
	compare.Error(t, "another session", core.ErrNotFound, w.control().CheckPin(t.Context(), w.scope(), core.NewID[core.SessionID](), small))
}

func medium(w *world) core.Message {
	m := w.said(core.RoleUser, "a word of advice")
	m.TokenCount = 300
	return m
}

// say adds a message of a user with its answer.
func (w *world) say(id, author, content string) {
	m := w.said(core.RoleUser, content+strings.Repeat(" word", 40))
	m.AuthorID, m.Author = id, author
	w.add(m)
	w.add(w.said(core.RoleAssistant, "noted"))
}

// The summary model gets the names of all speakers, in the form that prompts have, and is told
// what it means; of one speaker it gets none.
func TestSummaryNamesSpeakers(t *testing.T) {
	t.Parallel()
	for _, others := range []bool{false, true} {
		w := newWorld(t, core.ContextSettings{}, 8192)
		w.say("u1", "Ann", "the pump is red")
		w.say("u1", "Ann", "and tall")
		if others {
			w.say("u2", "Ben", "no, it is blue")
			w.say("u2", "Ben", "at night")
		}
		for range 3 {
			w.say("u1", "Ann", "look again")
		}
		w.writer.Add("Ann says the pump is red and tall. Ben says it is blue. Noted word.")
		_, _ = w.keeper.Summarize(t.Context(), w.scope(), w.Session.ID, "")
		requests := w.writer.Requests()
		if len(requests) == 0 {
			t.Fatal("the summary model was not asked")
		}
		text := requests[0].Messages[0].Content
		for _, line := range []string{"[1] user: [from user Ann]\nthe pump is red", "[5] user: [from user Ben]\nno, it is blue", `"[from user NAME]", names who wrote it`} {
			if got := strings.Contains(text, line); got != others {
				t.Errorf("several speakers %v: %q in the request: %v\n%s", others, line, got, text)
			}
		}
	}
}

// watcher records what a Compactor reports, a line each.
type watcher struct {
	core.NoObserver
	mu    sync.Mutex
	lines []string // guarded by mu
}

func (w *watcher) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}

func (w *watcher) Fitted(_ context.Context, t compaction.Turn, d contextwindow.Decision, err error) {
	w.note("fitted %s: fits %t, rungs %v, floor %t", t.Profile.Model.Info().Name, err == nil && d.Total <= d.Budget.Usable, d.Rungs, errors.Is(err, core.ErrContextFloor))
}

func (w *watcher) Sending(_ context.Context, _ compaction.Turn, d contextwindow.Decision, sent contextwindow.PromptSize) {
	w.note("sending: not empty %t, fits %t", sent.Total() > 0, sent.Used(d) <= d.Total)
}

func (w *watcher) CountOf(_ string, counter core.Counter, n int, labels ...string) {
	w.Count(counter, n, labels...)
}

func (w *watcher) Summarizing(ctx context.Context, _ compaction.Turn, o contextwindow.Order) (context.Context, func(compaction.Made)) {
	w.note("summarizing by %s on rung %d", o.Trigger, o.Rung)
	return ctx, func(m compaction.Made) {
		w.note("ended: %s %s, %s, error %t", m.Outcome, m.Cause, m.Summary.Strategy, m.Err != nil)
	}
}

func (w *watcher) Committed(_ context.Context, c compaction.Commit) {
	w.note("committed version %d: smaller %t, stale %t", c.Turn.Session.SummaryVersion, c.After.Total < c.Before.Total, errors.Is(c.Err, core.ErrStale))
}

func (w *watcher) Count(counter core.Counter, n int, labels ...string) {
	if !slices.Contains(labels, "renewed") {
		w.note("%s %s %d", counter, strings.Join(labels, " "), n)
	}
}

// told returns what was reported since the last call.
func (w *watcher) told() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.lines = nil }()
	return strings.Join(w.lines, "\n")
}

// watched gives the world's Compactor a watcher.
func (w *world) watched() *watcher {
	watch := &watcher{}
	w.options.Observer = watch
	w.keeper = compaction.New(w.options)
	return watch
}

// Each summary and each report is followed by a count of the conversation. What is
// missing is reported, and logged for the operator; what is imported at each count is not missing.
func TestCoverageIsChecked(t *testing.T) {
	t.Parallel()
	w := full(t)
	var log bytes.Buffer
	w.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
	watch := w.watched()
	w.writer.Add(always(notes))
	w.db.Before(func(method string) error {
		if method == "CountOnPath" {
			w.turns(1, 10)
		}
		return nil
	})
	w.fit()
	compare.Contains(t, "watch.told(): want a check after the summary", "context_lost_messages_total  0", watch.told())
	w.Session.SummarizedCount -= 2 // as if the summary covered two messages fewer than the cursor says
	must.Get(w.control().Report(t.Context(), w.scope(), w.Session.ID))(t)
	if told := watch.told(); !strings.Contains(told, "context_lost_messages_total  2") || !strings.Contains(log.String(), `msg="messages lost from the context"`) {
		t.Errorf("got %q and the log %s, want two messages missed", told, &log)
	}
}

// R6: where nothing is summarized by size, a warning is raised when the prompt nears
// the limit: once, across a restart too, and again after a summary by hand.
func TestWarnsOnceInACycle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{AutoSummarize: new(bool)}, 8192)
	watch := w.watched()
	var log strings.Builder
	w.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
	w.keeper = compaction.New(w.options)
	warnings := func() (n int) {
		for _, e := range w.Events {
			if e.Type == core.EventContextWarning {
				n++
			}
		}
		return n
	}
	grow := func() {
		w.t.Helper()
		for range 100 {
			w.turns(1, 100)
			w.ask("go on")
			if _, d := w.fit(); d.Total*10 > d.Budget.Usable*9 {
				return
			}
			if strings.Contains(watch.told(), "context_warnings") {
				w.t.Fatal("warned before the limit is near")
			}
		}
		w.t.Fatal("the prompt never came near its limit")
	}
	grow()
	compare.Contains(t, "watch.told(): want a warning", "context_warnings_total  1\nfitted", watch.told())
	first := w.Events[len(w.Events)-1]
	got := coretest.Data[core.ContextData](first)
	if first.Type != core.EventContextWarning || first.RunID != w.run.ID || got.Trigger != "near_limit" || got.TokensBefore == 0 || !strings.Contains(got.Reason, "summarize it") {
		t.Errorf("got %s %+v, want the warning of the run with what to do", first.Type, got)
	}
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), `msg="context near its limit"`) {
		t.Errorf("got the log %q, want the warning", log.String())
	}
	w.fit()
	w.keeper = compaction.New(w.options) // a restart
	w.fit()
	compare.Equal(t, "warnings in one cycle", 1, warnings())
	w.endRun()
	w.writer.Add(always(notes))
	must.Get(w.keeper.Summarize(t.Context(), w.scope(), w.Session.ID, ""))(t)
	grow()
	compare.Equal(t, "warnings in two cycles", 2, warnings())
}
