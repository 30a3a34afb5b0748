package nodes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/agents/nodes"
	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// call is a call of the tool.
func call(id, name string) core.ToolCall { return core.ToolCall{ID: id, Name: name, Arguments: "{}"} }

// asking is a state whose model has asked for the calls.
func (w *world) asking(calls ...core.ToolCall) nodes.AgentState {
	w.t.Helper()
	w.model.Add(llmtest.Call(calls...))
	return w.mustCall(w.begin("go"))
}

// results returns "id status content" of the tool messages of the log, in order.
func (w *world) results() []string {
	var out []string
	for _, m := range w.Messages {
		if m.Role == core.RoleTool {
			out = append(out, fmt.Sprintf("%s %s %s", m.ToolCallID, m.Status, m.Content))
		}
	}
	return out
}

// W13: tools run in parallel; their results are stored in the order of the calls, whichever ends first.
func TestResultsInTheOrderOfTheCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8192)
	turn := []chan struct{}{make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})}
	close(turn[3])
	step := func(i int) *tools.Custom { // each waits for the one after it
		return toolOf(fmt.Sprint("step", i), func(ctx context.Context, _ tools.Call) (string, error) {
			select {
			case <-turn[i+1]:
			case <-ctx.Done():
				return "", ctx.Err()
			}
			close(turn[i])
			return fmt.Sprint("result ", i), nil
		})
	}
	w.with(step(0), step(1), step(2))
	w.mustUse(w.asking(call("a", "step0"), call("b", "step1"), call("c", "step2")))
	want := []string{"a complete result 0", "b complete result 1", "c complete result 2"}
	compare.Equal(t, "results", want, w.results())
	compare.Equal(t, "writes: want one for the calls and one for all results", 2, len(w.Writes))
}

// What goes wrong with a tool is its result: the model reads it and decides.
func TestToolsThatFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8192).with(
		breaks("broken", "the disk is full"),
		toolOf("panics", func(context.Context, tools.Call) (string, error) { panic("SECRET") }),
		says("large", strings.Repeat("x", 101)),
		says("just", strings.Repeat("y", 100)),
		breaks("rants", strings.Repeat("z", 1000)),
		says("hidden", "nobody may call me"),
		says("silent", ""),
	)
	w.limits.Output = 100
	w.profile.Agent.Tools = slices.DeleteFunc(w.profile.Agent.Tools, func(n string) bool { return n == "hidden" })
	s := w.asking(call("1", "broken"), call("2", "panics"), call("3", "large"), call("4", "just"), call("5", "rants"),
		call("6", "hidden"), call("7", "nothing"), call("8", ""), call("9", "functions.silent"), call("10", "silent"))
	s = w.mustUse(s)
	list := "the tools are [broken just large panics rants silent]"
	want := []string{
		"1 failed error: the disk is full",
		"2 failed error: the tool failed",
		"3 failed error: the result has 101 bytes, over the limit of 100; ask for less",
		"4 complete " + strings.Repeat("y", 100),
		"5 failed error: " + strings.Repeat("z", 93),
		`6 failed error: there is no tool "hidden"; ` + list,
		`7 failed error: there is no tool "nothing"; ` + list,
		`8 failed error: there is no tool "unnamed"; ` + list,
		`9 failed error: there is no tool "functions_silent"; ` + list,
		"10 complete ",
	}
	compare.Equal(t, "results", want, w.results())
	if !strings.Contains(w.log.String(), "SECRET") || !strings.Contains(w.log.String(), "goroutine") {
		t.Errorf("the log does not show the panic with its stack: %s", w.log)
	}
	if len(s.OpenCalls()) != 0 {
		t.Errorf("calls %v are still open", s.OpenCalls())
	}
}

// A tool has so much time; one that does not stop then is left behind. Either way
// the others' results are stored.
func TestToolTimeLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 8192)
		free := make(chan struct{})
		defer close(free)
		polite := func(ctx context.Context, _ tools.Call) (string, error) {
			<-ctx.Done()
			return "", fmt.Errorf("fetch: %w", ctx.Err())
		}
		w.with(
			toolOf("polite", polite), onceOf("order", polite),
			toolOf("late", func(ctx context.Context, _ tools.Call) (string, error) {
				<-ctx.Done()
				return "just in time", nil
			}),
			toolOf("deaf", func(context.Context, tools.Call) (string, error) { <-free; return "too late", nil }),
			says("quick", "done"),
		)
		s := w.asking(call("1", "polite"), call("2", "order"), call("3", "late"), call("4", "deaf"), call("5", "quick"))
		start := time.Now()
		w.mustUse(s)
		if took := time.Since(start); took < time.Minute || took > 2*time.Minute {
			t.Errorf("took %v, want the limit of a minute and a little more", took)
		}
		want := []string{
			"1 failed error: the tool did not answer within 1m0s",
			"2 failed error: the tool did not answer within 1m0s; whether it took effect is not known",
			"3 complete just in time",
			"4 failed error: the tool did not answer within 1m0s",
			"5 complete done",
		}
		compare.Equal(t, "results", want, w.results())
		compare.Contains(t, "the log does not name the tool that was left behind", "tool does not stop", w.log.String())
	})
}

// The results of finished work are still stored when a run is
// canceled or handed back; the other calls stay open.
func TestCancelKeepsFinishedResults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 8192)
		free := make(chan struct{})
		defer close(free)
		w.with(
			toolOf("polite", func(ctx context.Context, _ tools.Call) (string, error) { <-ctx.Done(); return "", ctx.Err() }),
			toolOf("deaf", func(context.Context, tools.Call) (string, error) { <-free; return "", nil }),
			onceOf("order", func(context.Context, tools.Call) (string, error) { return "ordered", nil }),
			breaks("broken", "no such thing"),
		)
		s := w.asking(call("1", "polite"), call("2", "deaf"), call("3", "order"), call("4", "broken"))
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(core.ErrCanceled) })
		start := time.Now()
		_, err := w.use(ctx, s)
		if !errors.Is(err, core.ErrCanceled) || time.Since(start) > 10*time.Second {
			t.Errorf("got error %v after %v, want ErrCanceled within seconds", err, time.Since(start))
		}
		want := []string{"3 complete ordered", "4 failed error: no such thing"}
		compare.Equal(t, "results", want, w.results())
		var open []string
		for _, c := range w.resume(s.Run).OpenCalls() {
			open = append(open, c.ID)
		}
		compare.Equal(t, "calls that wait for the next attempt", []string{"1", "2"}, open)
	})
}

// A tool that must not run twice is noted before it starts. After a crash,
// no row means run it; a row without a result means that it may have run.
func TestToolsThatMustNotRunTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8192)
	var ordered, read atomic.Int32
	var noted int
	w.with(
		onceOf("order", func(context.Context, tools.Call) (string, error) {
			noted = len(w.Starts)
			return fmt.Sprint("order ", ordered.Add(1)), nil
		}),
		toolOf("read", func(context.Context, tools.Call) (string, error) { read.Add(1); return "text", nil }),
	)
	s := w.asking(call("1", "order"), call("2", "read"))

	// The process dies after the tools were started and before their results are stored.
	crash := errors.New("crash")
	w.db.Before(func(op string) error {
		if op == "Write" {
			return crash
		}
		return nil
	})
	if _, err := w.use(t.Context(), s); !errors.Is(err, crash) {
		t.Fatalf("got error %v, want the crash", err)
	}
	if noted != 1 || len(w.Starts) != 1 || w.Starts[0].CallID != "1" || w.Starts[0].Tool != "order" || w.Starts[0].Attempt != 1 {
		t.Errorf("got %d rows when the tool ran, then %+v, want the one of order", noted, w.Starts)
	}

	w.db.Before(nil)
	w.run.Attempt++
	w.mustUse(w.resume(*w.run))
	want := []string{"1 failed error: the call was interrupted; whether it took effect is not known", "2 complete text"}
	compare.Equal(t, "results", want, w.results())
	compare.Equal(t, "order ran times, read times: want once and twice", []int32{1, 2}, []int32{ordered.Load(), read.Load()})
}

// A tool whose row cannot be written does not start.
func TestNoRowNoTool(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"StartTools", "ToolExecutions"} {
		var ran atomic.Int32
		w := newWorld(t, 8192).with(onceOf("order", func(context.Context, tools.Call) (string, error) {
			ran.Add(1)
			return "", nil
		}))
		s := w.asking(call("1", "order"))
		w.db.Before(func(have string) error {
			if have == op {
				return core.ErrStale
			}
			return nil
		})
		if _, err := w.use(t.Context(), s); !errors.Is(err, core.ErrStale) || ran.Load() != 0 {
			t.Errorf("%s: got error %v, the tool ran %d times, want ErrStale and not at all", op, err, ran.Load())
		}
	}
}

// A call gets its raw arguments, its id and the session; a model that writes
// broken JSON learns it from the result and may try again.
func TestArgumentsAreGivenAsWritten(t *testing.T) {
	t.Parallel()
	const raw = "{\"expression\": \"2+2\", \n"
	var got tools.Call
	w := newWorld(t, 8192).with(tools.NewCalculator(), toolOf("keep", func(_ context.Context, c tools.Call) (string, error) {
		got = c
		return "ok", nil
	}))
	s := w.mustUse(w.asking(
		core.ToolCall{ID: "1", Name: "calculator", Arguments: raw}, core.ToolCall{ID: "2", Name: "keep", Arguments: raw}))
	if got.ID != "2" || got.Arguments != raw || got.Session.ID != w.Session.ID {
		t.Errorf("got %+v, want the call as the model wrote it", got)
	}
	if want := "1 failed error: the arguments are not one JSON object; expected a JSON object such as {"; !strings.HasPrefix(w.results()[0], want) {
		t.Errorf("got %q, want %q …", w.results()[0], want)
	}
	w.model.Add("I give up")
	w.mustCall(s)
	sent := w.model.Requests()[1].Messages
	if got := sent[1].ToolCalls[0].Arguments; got != raw {
		t.Errorf("the model reads %q as its arguments, want %q", got, raw)
	}
}

// A result over its limit is stored whole, and the prompt gets head, tail and a pointer, counted as it is
// sent and the same in every later prompt, also when the limit is another one by then.
func TestLargeResultsAreStoredWhole(t *testing.T) {
	t.Parallel()
	large := "BEGIN " + strings.Repeat("0123456789 ", 20_000) + " END"
	w := newWorld(t, 128_000).with(says("read_all", large), says(core.ToolReadResult, ""))
	w.limits.Shown = 3000
	w.profile.Agent.ToolSettings = core.ToolSettings{"read_all": {MaxOutputBytes: 6000}}
	w.model.Add(llmtest.Call(call("1", "read_all")), "ok", "again")
	s := w.mustCall(w.begin("go"))
	s = w.mustUse(s)
	m := w.last()
	if m.Content != large || m.Status != core.MessageComplete || m.TokenCount > 6000 {
		t.Fatalf("got %d bytes with %d tokens, want all %d, counted as they are shown", len(m.Content), m.TokenCount, len(large))
	}
	w.mustCall(s)
	w.profile.Agent.ToolSettings, w.limits.Shown = nil, 0 // changed meanwhile
	w.mustCall(w.begin("and now?"))
	requests := w.model.Requests()
	first, second := requests[1].Messages[2].Content, requests[2].Messages[2].Content
	pointer := fmt.Sprintf(`the whole result is message %s; read_result {"message_id": "%s", "offset": 4000} reads on …]`, m.ID, m.ID)
	if !strings.HasPrefix(first, "BEGIN 0123") || !strings.HasSuffix(first, "END") || !strings.Contains(first, pointer) || len(first) > 6300 {
		t.Errorf("got %d bytes %.80q … %q in the prompt, want head, tail and %q", len(first), first, first[max(0, len(first)-80):], pointer)
	}
	compare.Equal(t, "a later prompt shows other bytes", second, first)
	if got, want := m.TokenCount, w.count.Message(core.Message{Role: core.RoleTool, Content: first, ToolCallID: m.ToolCallID, ToolName: m.ToolName}); got != want {
		t.Errorf("counted %d tokens, want the %d that are sent", got, want)
	}
}

// The settings of the agent reach the tool, and its time limit holds instead of the
// general one.
func TestToolSettingsOfTheAgent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen core.ToolSetting
		w := newWorld(t, 8192).with(
			toolOf("slow", func(ctx context.Context, c tools.Call) (string, error) {
				seen = c.Settings
				<-ctx.Done()
				return "", ctx.Err()
			}),
			toolOf("slower", func(ctx context.Context, _ tools.Call) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			}))
		w.profile.Agent.ToolSettings = core.ToolSettings{"slow": {Timeout: core.Duration(3 * time.Second), AllowHosts: []string{"a"}}}
		s := w.asking(call("1", "slow"), call("2", "slower"))
		start := time.Now()
		w.mustUse(s)
		compare.Equal(t, "took: want the general limit of the other", time.Minute, time.Since(start))
		if got := w.results(); len(got) != 2 || !strings.Contains(got[0], "within 3s") || !strings.Contains(got[1], "within 1m0s") {
			t.Errorf("got %q", got)
		}
		compare.Equal(t, "the tool: string(raw)", `{"timeout":"3s","allow_hosts":["a"]}`, string(must.Get(json.Marshal(seen))(t)))
	})
}

// echo is a tool that answers with its arguments.
func echo(name string) *tools.Custom {
	return toolOf(name, func(_ context.Context, c tools.Call) (string, error) { return "got " + c.Arguments, nil })
}

// A run that goes on after a crash calls its tools with the arguments that the model
// wrote, also when the texts of that message were left in storage.
func TestOpenCallsAreLoadedWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8192, "done").with(echo("note"))
	s := w.begin("hello")
	w.append(core.Message{Role: core.RoleAssistant, RunID: s.Run.ID, ToolCalls: []core.ToolCall{
		{ID: "c1", Name: "note", Arguments: `{"n":1}`}, {ID: "c2", Name: "note", Arguments: `{"n":2}`},
	}})
	w.append(core.Message{Role: core.RoleTool, RunID: s.Run.ID, ToolCallID: "c1", Content: "noted", Status: core.MessageComplete})
	w.WithTexts = 1
	w.loop(w.resume(s.Run))
	compare.Equal(t, "results", []string{"c1 complete noted", `c2 complete got {"n":2}`}, w.results())

	w.append(core.Message{Role: core.RoleAssistant, RunID: s.Run.ID, ToolCalls: []core.ToolCall{{ID: "c3", Name: "note", Arguments: `{"n":3}`}, {ID: "c4"}}})
	w.append(core.Message{Role: core.RoleTool, RunID: s.Run.ID, ToolCallID: "c4"})
	away := errors.New("the database is away")
	w.db.Before(func(op string) error {
		if op == "GetMessages" {
			return away
		}
		return nil
	})
	_, err := (&nodes.RetrieveContext{Deps: w.deps()}).Run(t.Context(), nodes.AgentState{
		Turn: compaction.Turn{Session: w.Session, Profile: w.profile}, Run: s.Run, UserMessage: s.UserMessage,
	})
	compare.Error(t, "err: want that the arguments cannot be loaded", away, err)
}
