package compaction_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/coretest"
)

// oneSlot is a server that works on one request at a time and lets the others wait:
// answers take a second, summaries as long as they take.
type oneSlot struct {
	slot      chan struct{}
	summary   time.Duration
	window    int
	summaries int // that were written whole
	canceled  int // that were given up
}

const answerTime = time.Second

// Info describes the model.
func (s *oneSlot) Info() llm.Info {
	return llm.Info{Name: "local", Provider: "openai", Window: s.window, MaxOutput: s.window / 8}
}

// Stream waits for the slot, answers, and releases it; immediately if the caller goes away.
func (s *oneSlot) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		summary := strings.Contains(req.Messages[len(req.Messages)-1].Content, "<transcript>")
		gone := func() {
			if summary {
				s.canceled++
			}
			yield(llm.Delta{}, llm.CanceledError(ctx, "openai"))
		}
		select {
		case <-s.slot:
			defer func() { s.slot <- struct{}{} }()
		case <-ctx.Done():
			gone()
			return
		}
		took, text := answerTime, "We go on."
		if summary {
			took, text = s.summary, notes
		}
		select {
		case <-time.After(took):
		case <-ctx.Done():
			gone()
			return
		}
		if summary {
			s.summaries++
		}
		if yield(llm.Delta{Text: text}, nil) {
			yield(llm.Delta{Finish: core.FinishStop}, nil)
		}
	}
}

// slotFigures are what came of a conversation at a server with one slot.
type slotFigures struct {
	turns, versions, extracts, canceled int
	longest                             time.Duration // that a turn took more than its answer
	after                               int           // messages that are not summarized in the end
}

// talkAtOneSlot has a conversation of that many turns, with pauses of 5 to 65 seconds.
func talkAtOneSlot(t *testing.T, settings core.ContextSettings, turns int) slotFigures {
	t.Helper()
	w := newWorld(t, settings, 8_192)
	f := slotFigures{turns: turns}
	server := &oneSlot{summary: 25 * time.Second, window: 8_192}
	w.bubble(func() {
		server.slot = make(chan struct{}, 1)
		server.slot <- struct{}{}
		var servers llm.Servers
		model := servers.Share(server, llm.Entry{Provider: "openai", BaseURL: "http://127.0.0.1:8080/v1"})
		w.profile.Model, w.models["writer"], w.models["local"] = model, model, model
		for i := range turns {
			w.ask(fmt.Sprintf("question %d: %s", i, strings.Repeat("word ", 70)))
			begun := time.Now()
			turn, d := w.fit()
			res, err := llm.Collect(model.Stream(w.t.Context(), w.request(turn, d)), nil)
			if err != nil {
				w.t.Fatal(err)
			}
			f.longest = max(f.longest, time.Since(begun)-answerTime)
			w.add(w.said(core.RoleAssistant, res.Text+strings.Repeat(" word", 70)))
			w.endRun()
			w.keeper.Enqueue(w.scope(), w.Session.ID)
			<-time.After(time.Duration(5+(i*37)%61) * time.Second)
		}
		<-time.After(5 * time.Minute)
		synctest.Wait()
	})
	session, versions, log := w.now()
	f.versions, f.canceled, f.after = len(versions), server.canceled, len(log)-session.SummarizedCount
	for _, v := range versions {
		if v.Model == "" {
			f.extracts++
		}
	}
	if w.Breaker.Failures > 0 || len(kindsOf(w.Events, core.EventContextFailed)) > 0 {
		t.Errorf("%s: breaker %+v, %d failures told, want nobody blamed for giving way", settings.Policy, w.Breaker, len(kindsOf(w.Events, core.EventContextFailed)))
	}
	return f
}

// kindsOf returns the events of a kind.
func kindsOf(events []core.Event, kind core.EventType) (out []core.Event) {
	for _, e := range events {
		if e.Type == kind {
			out = append(out, e)
		}
	}
	return out
}

// The user goes first: at a server with one slot, where a summary takes 25 seconds, no
// turn takes a second more than its answer, and the summaries are made in between. The
// clock is that of testing/synctest.
//
// Finding: context-F8
func TestShowSlot(t *testing.T) {
	t.Parallel()
	turns := 40
	if long() {
		turns = 600
	}
	table := fmt.Sprintf("%-20s %-6s %-10s %-9s %-12s %-15s %s\n", "policy", "turns", "summaries", "extracts", "gave way", "not summarized", "longest added wait")
	for _, policy := range []string{"window", "budget", "sliding", "ratio", "window after_run", "window inline", "off"} {
		name, timing, ok := strings.Cut(policy, " ")
		settings := core.ContextSettings{Policy: name}
		if ok {
			settings.Timing = &timing
		}
		f := talkAtOneSlot(t, settings, turns)
		table += fmt.Sprintf("%-20s %-6d %-10d %-9d %-12d %-15d %s\n", policy, f.turns, f.versions, f.extracts, f.canceled, f.after, f.longest)
		if f.longest > time.Second || f.extracts > 0 || (f.versions == 0) != (name == "off") {
			t.Errorf("%s: %+v, want a summary now and then, by the model, and nobody to wait for it", policy, f)
		}
	}
	t.Log("\nOne slot, 25 s a summary, 1 s an answer, pauses of 5 to 65 s\n" + table)
}

// A summary that gave way is made when the server is idle again, and its call is recorded.
//
// Finding: context-F8
func TestSummaryThatGaveWayIsMadeLater(t *testing.T) {
	t.Parallel()
	w := grown(t, at("window", "background"), near)
	w.writer.Add(llm.Step{Err: &llm.Error{Kind: llm.KindCanceled, Err: llm.ErrYielded}}, notes)
	w.bubble(func() {
		w.fit()
		synctest.Wait()
	})
	if len(w.prepared()) != 1 || len(w.Calls) != 2 || w.Breaker.Failures != 0 || len(w.Events) != 0 {
		t.Errorf("got %d prepared, %d booked calls, breaker %+v, events %v, want the second try prepared", len(w.prepared()), len(w.Calls), w.Breaker, coretest.Types(w.Events))
	}
	w = grown(t, at("window", "background"), near)
	w.writer.Add(llm.Step{Repeat: true, Err: &llm.Error{Kind: llm.KindCanceled, Err: llm.ErrYielded}})
	var servers llm.Servers
	w.models["writer"] = servers.Share(w.writer, llm.Entry{Provider: "openai", BaseURL: "http://127.0.0.1:8080/v1"})
	if err := w.keeper.SummarizeDue(t.Context(), w.scope(), w.Session.ID); !errors.Is(err, llm.ErrYielded) || w.Lease.Holder != "" {
		t.Errorf("got error %v, lease %+v, want to be told and the lease given back", err, w.Lease)
	}
}
