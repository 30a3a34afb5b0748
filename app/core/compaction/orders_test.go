package compaction_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
	"bobbin/tests/coretest"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// slowWriter has summaries written by a model with a window that takes a few turns per call,
// in so long a time each.
func (w *world) slowWriter(window int, took time.Duration) {
	w.writer.WithInfo(llm.Info{Name: "writer", Provider: "scripted", Window: window, MaxOutput: 800})
	w.writer.Add(llmtest.Step{Repeat: true, From: func(llm.Request) llmtest.Step {
		<-time.After(took)
		return llmtest.Say(fmt.Sprintf("%s\n- call %d", notes, len(w.writer.Requests())))
	}})
}

// A manual summary has the time of one in the background, continues until all is covered
// that was requested, and answers with the last version.
func TestSummarizeCallByCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 128_000)
	w.turns(40, 200)
	w.slowWriter(8_192, 12*time.Second)
	w.bubble(func() {
		begun := time.Now()
		got := must.Get(w.keeper.Summarize(w.t.Context(), w.scope(), w.Session.ID, "the dog"))(t)
		_, versions, log := w.now()
		calls := len(w.writer.Requests())
		if calls < 3 || len(versions) != calls || got.Version != calls || time.Since(begun) != time.Duration(calls)*12*time.Second {
			t.Errorf("got version %d of %d after %d calls and %s, want a version for each call", got.Version, len(versions), calls, time.Since(begun))
		}
		for i, v := range versions {
			if v.Model != "writer" || v.Note != "" || v.Focus != "the dog" || v.Trigger != "manual" || v.OrderedSeq != got.ThroughSeq || (v.ThroughSeq == v.OrderedSeq) != (i == len(versions)-1) {
				t.Errorf("version %d: %+v, want the model's, a part of what goes to #%d", i+1, v, got.ThroughSeq)
			}
		}
		if rest := len(log) - int(got.ThroughSeq); rest > 4 {
			t.Errorf("%d messages are not summarized, want the recent ones", rest)
		}
		w.report()
	})
}

// When the request stops waiting it is answered with the last version so far, and the work continues.
func TestSummarizeGoesOnBehindTheAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 128_000)
	w.turns(60, 200)
	w.slowWriter(8_192, 25*time.Second)
	w.bubble(func() {
		begun := time.Now()
		got, err := w.keeper.Summarize(w.t.Context(), w.scope(), w.Session.ID, "")
		if err != nil || time.Since(begun) != w.options.BackgroundTime || got.Version != 2 || got.ThroughSeq >= got.OrderedSeq {
			t.Errorf("got %+v, %v after %s, want the second version after %s", got, err, time.Since(begun), w.options.BackgroundTime)
		}
		compare.Error(t, "for another one meanwhile: want a conflict", core.ErrConflict, compare.ErrorOf(w.keeper.Summarize(w.t.Context(), w.scope(), w.Session.ID, "")))
		<-time.After(5 * time.Minute)
		synctest.Wait()
		if session, versions, _ := w.now(); session.SummaryThroughSeq != got.OrderedSeq || len(versions) != len(w.writer.Requests()) || w.Lease.Holder != "" {
			t.Errorf("the cursor is at #%d after %d calls, %d versions, want #%d", session.SummaryThroughSeq, len(w.writer.Requests()), len(versions), got.OrderedSeq)
		}
	})
}

// keyed returns a context of a request with an idempotency key, of which an earlier
// execution has committed the result.
func keyed(ctx context.Context, result string) context.Context {
	w := core.KeyedWork{Request: core.KeyedRequest{Owner: core.LocalOwner, Key: "k", Token: "t"}, BodyHash: func() (string, error) { return "hash", nil }}
	if result != "" {
		w.Result = &core.KeyedResult{RequestHash: "hash", Name: result}
	}
	return core.WithKeyedWork(ctx, w)
}

// refusing are sessions that take no commit of a request with an idempotency key that has
// been answered.
type refusing struct {
	coretest.Sessions
	answered atomic.Bool
	refused  atomic.Int32
}

func (r *refusing) ApplyContext(ctx context.Context, tenant core.Tenant, c core.ContextChange) (core.Session, []core.Event, error) {
	if _, ok := core.KeyedWorkFrom(ctx); ok && r.answered.Load() {
		r.refused.Add(1)
		return core.Session{}, nil, core.KeyInProgress()
	}
	return r.Sessions.ApplyContext(ctx, tenant, c)
}

// A request with an idempotency key may be answered before its last version is committed:
// what continues behind it commits without the key. If its process died before it answered,
// a repetition gets the last version, and the rest continues.
func TestSummarizeWithIdempotencyKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 128_000)
	w.turns(60, 200)
	w.slowWriter(8_192, 25*time.Second)
	sessions := &refusing{Sessions: w.db.Sessions}
	w.options.Stores.Sessions = sessions
	w.bubble(func() {
		got, err := w.keeper.Summarize(keyed(w.t.Context(), ""), w.scope(), w.Session.ID, "")
		sessions.answered.Store(true)
		if err != nil || got.ThroughSeq >= got.OrderedSeq {
			t.Fatalf("got %+v, %v, want a part", got, err)
		}
		<-time.After(5 * time.Minute)
		synctest.Wait()
		session, versions, _ := w.now()
		if session.SummaryThroughSeq != got.OrderedSeq || len(versions) != len(w.writer.Requests()) {
			t.Errorf("the cursor is at #%d, %d versions of %d calls, %d refused, want all kept", session.SummaryThroughSeq, len(versions), len(w.writer.Requests()), sessions.refused.Load())
		}
	})

	w = newWorld(t, core.ContextSettings{}, 128_000)
	w.turns(60, 200)
	w.slowWriter(8_192, 25*time.Second)
	w.bubble(func() {
		first := compaction.New(w.options)
		ctx, kill := context.WithCancel(w.t.Context())
		left := make(chan error)
		go func() { left <- first.Run(ctx) }()
		got := must.Get(first.Summarize(w.t.Context(), w.scope(), w.Session.ID, "the cat"))(t)
		kill()
		if err := <-left; err != nil {
			t.Error(err)
		}
		again, err := w.keeper.Summarize(keyed(w.t.Context(), string(got.ID)), w.scope(), w.Session.ID, "the cat")
		if err != nil || again.Version != got.Version {
			t.Errorf("the repetition got version %d, %v, want %d", again.Version, err, got.Version)
		}
		<-time.After(5 * time.Minute)
		synctest.Wait()
		session, versions, _ := w.now()
		if session.SummaryThroughSeq != got.OrderedSeq || !strings.Contains(fmt.Sprint(versions[len(versions)-1].Focus), "the cat") {
			t.Errorf("the cursor is at #%d, want #%d", session.SummaryThroughSeq, got.OrderedSeq)
		}
		if again, err := w.keeper.Summarize(keyed(w.t.Context(), string(versions[len(versions)-1].ID)), w.scope(), w.Session.ID, "the cat"); err != nil || again.Version != len(versions) || len(w.writer.Requests()) > len(versions)+1 {
			t.Errorf("a repetition of what is done: version %d, %v, %d calls", again.Version, err, len(w.writer.Requests()))
		}
	})
}

// An order that the provider refuses as too long is halved, or made as large as the provider
// says; it counts as no failure.
func TestOrderTooLongForTheProvider(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		limit, calls int
		manual       bool
	}{"told": {4_096, 2, false}, "not told": {0, 3, false}, "by hand": {0, 0, true}} {
		w := full(t)
		refuse := func(req llm.Request) *llm.Error {
			if w.size(req)+req.MaxOutputTokens <= 4_096 {
				return nil
			}
			return &llm.Error{Kind: llm.KindContextLength, Provider: "scripted", Limit: tt.limit}
		}
		w.writer.WithInfo(llm.Info{Name: "writer", Provider: "scripted", Window: 16_000, MaxOutput: 500})
		w.writer.Add(llmtest.Step{Repeat: true, From: func(req llm.Request) llmtest.Step {
			if e := refuse(req); e != nil {
				return llmtest.Fail(e)
			}
			return llmtest.Say(notes)
		}})
		if tt.manual {
			compare.Equal(t, fmt.Sprintf("%s: got.Focus", name), "the dog", must.Get(w.keeper.Summarize(t.Context(), w.scope(), w.Session.ID, "the dog"))(t).Focus)
			continue
		}
		w.fit()
		if v := w.Summaries; len(v) != 1 || v[0].Model != "writer" || v[0].MessagesShortened != 0 || w.Breaker.Failures != 0 {
			t.Errorf("%s: got %+v, breaker %+v, want a smaller summary of the model", name, v, w.Breaker)
		}
		if n := len(w.writer.Requests()); n > tt.calls || len(w.Calls) != n {
			t.Errorf("%s: got %d calls, %d booked, want %d", name, n, len(w.Calls), tt.calls)
		}
	}
}

// B5, C6: /summarize makes a version long before any trigger, with the focus in the
// prompt, and stores what it returns.
func TestSummarize(t *testing.T) {
	t.Parallel()
	for _, auto := range []bool{true, false} { // auto_summarize: false leaves /summarize alone
		w := newWorld(t, core.ContextSettings{AutoSummarize: &auto}, 128_000)
		w.writer.Add(notes)
		w.turns(5, 50)
		got := must.Get(w.keeper.Summarize(t.Context(), w.scope(), w.Session.ID, "the name of the dog"))(t)
		compare.Equal(t, "returned and stored", w.Summaries, []core.Summary{got})
		if got.Version != 1 || got.Trigger != "manual" || got.Focus != "the name of the dog" || got.MessagesCovered < 2 {
			t.Errorf("got %+v, want version 1, manual, with its focus", got)
		}
		if text := w.writer.Requests()[0].Messages[0].Content; !strings.Contains(text, "the name of the dog") {
			t.Errorf("the focus is not in the prompt:\n%.1000s", text)
		}
		told := coretest.Data[core.ContextData](w.Events[0])
		if r := w.report(); told.TokensAfter != r.Planned || told.TokensBefore <= r.Planned || told.Version != 1 {
			t.Errorf("context.completed says %+v, /context %d tokens planned", told, r.Planned)
		}
	}
}

// 422: with nothing to summarize there is no model call and no change.
func TestSummarizeNothing(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		log  func(w *world)
	}{
		{"empty", func(*world) {}},
		{"one turn", func(w *world) { w.turns(1, 10) }},
		{"only the run in progress", func(w *world) { w.ask("hello") }},
		{"all is summarized", func(w *world) { w.turns(1, 10); w.turns(1, 10); w.another(2, "before") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, core.ContextSettings{}, 128_000)
			tt.log(w)
			before := w.state()
			_, err := w.keeper.Summarize(t.Context(), w.scope(), w.Session.ID, "")
			compare.Error(t, "err", core.ErrUnprocessable, err)
			compare.Equal(t, "calls, state: want nothing done", []any{before, 0}, []any{w.state(), len(w.writer.Requests())})
		})
	}
}

// 409: while another one of the session is being made here, and when another
// process was faster.
func TestSummarizeConflict(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 128_000)
	w.turns(5, 50)
	gate := llmtest.NewGate()
	w.writer.Add(llmtest.Step{Text: []string{notes}, Gate: gate})
	done := make(chan error)
	go func() {
		_, err := w.keeper.Summarize(t.Context(), w.scope(), w.Session.ID, "")
		done <- err
	}()
	<-gate.Reached()
	compare.Error(t, "for a second one meanwhile", core.ErrConflict, compare.ErrorOf(w.keeper.Summarize(t.Context(), w.scope(), w.Session.ID, "")))
	gate.Open()
	compare.Error(t, "for the first", nil, <-done)

	w.turns(5, 50)
	w.writer.Add(llmtest.Step{From: func(llm.Request) llmtest.Step {
		w.another(12, "THEIRS")
		return llmtest.Say("OURS")
	}})
	_, err := w.keeper.Summarize(t.Context(), w.scope(), w.Session.ID, "")
	if !errors.Is(err, core.ErrConflict) || errors.Is(err, core.ErrStale) {
		t.Errorf("got error %v after another process was faster, want ErrConflict", err)
	}
	compare.Equal(t, "summary: want the winner's", "THEIRS", *w.Session.ConversationSummary)
}

// 422 too when a summary would not be smaller than what it replaces.
func TestSummarizeNoGain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 200_000)
	w.useCounter(coarse{world: w})
	w.writer.Add(always(notes))
	w.turns(3, 600)
	before := w.state()
	compare.Error(t, "err", core.ErrUnprocessable, compare.ErrorOf(w.keeper.Summarize(t.Context(), w.scope(), w.Session.ID, "")))
	compare.Equal(t, "state: want nothing stored", before, w.state())
	if len(w.Calls) == 0 || len(w.Calls) != len(w.writer.Requests()) {
		t.Errorf("got %d booked calls, want the %d that were made", len(w.Calls), len(w.writer.Requests()))
	}
}
