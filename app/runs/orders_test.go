package runs_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/runs"
	"bobbin/tests/compare"
	"bobbin/tests/coretest"
)

// A run, with another queued behind it, meets a cancel, the stop of its process, a write that the
// database refuses and one whose acknowledgement is lost: in every order, before, between and after
// its own steps. TestFaults of tests/crash draws more of everything.
func TestEveryOrder(t *testing.T) {
	t.Parallel()
	steps := []string{"cancel", "stop", "refused write", "lost acknowledgement", "tool call", "answer"}
	for order := range permutations(steps) {
		if slices.Index(order, "answer") < slices.Index(order, "tool call") {
			continue
		}
		t.Run(strings.Join(order, ", "), func(t *testing.T) {
			simulate(t, func(t *testing.T) { runInOrder(t, order) })
		})
	}
}

// permutations yields the texts in each of their orders.
func permutations(texts []string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		if len(texts) == 0 {
			yield(nil)
			return
		}
		for i, first := range texts {
			rest := slices.Delete(slices.Clone(texts), i, i+1)
			for order := range permutations(rest) {
				if !yield(append([]string{first}, order...)) {
					return
				}
			}
		}
	}
}

// runInOrder takes each step when the one before has come to rest.
func runInOrder(t *testing.T, order []string) {
	db := coretest.New()
	call, end := make(chan struct{}), make(chan struct{})
	do := func(ctx context.Context, j *runs.Recorder, run core.Run) error {
		if err := closeCalls(ctx, j, run, db.Log(run.SessionID)); err != nil {
			return err
		}
		say(ctx, j, run, core.NewID[core.MessageID](), 0, "x")
		if err := await(ctx, call); err != nil {
			return err
		}
		if err := callTool(ctx, j, run); err != nil {
			return err
		}
		if err := await(ctx, end); err != nil {
			return err
		}
		return answer(ctx, j, run)
	}
	start := func(worker string) *process {
		return newProcess(t, db, worker, runs.Limits{Concurrent: 4, Grace: 5 * time.Second}, do).run(t)
	}
	a := start("a")
	b := start("b")
	first := a.accept(t, "first")
	second := a.accept(t, "second")
	refuse, lose := false, false
	db.Before(func(call string) error { return failOnce(&refuse, call) })
	db.After(func(call string) error { return failOnce(&lose, call) })
	for _, step := range order {
		synctest.Wait()
		switch step {
		case "cancel":
			run, _, err := db.Runs.RequestCancel(t.Context(), ann, first.ID)
			compare.Error(t, "cancel", nil, err)
			if run.Status == core.RunRunning {
				a.service.Cancel(run.ID)
			}
		case "stop":
			a.stop()
			a = start("a/2")
		case "refused write":
			db.Edit(func() { refuse = true })
		case "lost acknowledgement":
			db.Edit(func() { lose = true })
		case "tool call":
			close(call)
		case "answer":
			close(end)
		}
	}
	<-time.After(3 * time.Minute)
	a.stop()
	b.stop()
	checkSession(t, db, first.SessionID)
	if got := db.Run(first.ID).Status; got != core.RunCanceled &&
		(got != core.RunSucceeded || slices.Index(order, "cancel") < slices.Index(order, "answer")) {
		t.Errorf("the first run is %s", got)
	}
	a.wantStatus(t, second, core.RunSucceeded)
}

// await waits until the channel is closed, or for the end of ctx.
func await(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// failOnce returns an error for the next write if that may fail.
func failOnce(may *bool, call string) error {
	if call != "Write" || !*may {
		return nil
	}
	*may = false
	return errDown
}

// closeCalls answers the calls that an attempt before this one left open.
func closeCalls(ctx context.Context, j *runs.Recorder, run core.Run, log []core.Message) error {
	open := map[string]bool{}
	for _, m := range log {
		for _, c := range m.ToolCalls {
			if m.RunID == run.ID {
				open[c.ID] = true
			}
		}
		delete(open, m.ToolCallID)
	}
	for id := range open {
		result := message(run, core.RoleTool, "interrupted")
		result.ToolCallID = id
		if _, err := j.Append(ctx, write(run, result)); err != nil {
			return err
		}
	}
	return nil
}

// callTool appends a tool call and its result.
func callTool(ctx context.Context, j *runs.Recorder, run core.Run) error {
	call := message(run, core.RoleAssistant, "")
	call.ToolCalls = []core.ToolCall{{ID: string(core.NewID[core.MessageID]()), Name: "clock"}}
	if _, err := j.Append(ctx, write(run, call)); err != nil {
		return err
	}
	result := message(run, core.RoleTool, "noon")
	result.ToolCallID = call.ToolCalls[0].ID
	_, err := j.Append(ctx, write(run, result))
	return err
}

// checkSession checks that every run has ended, and that the messages came into
// the log in the order of acceptance, once each.
func checkSession(t *testing.T, db *coretest.Store, id core.SessionID) {
	t.Helper()
	var want []core.MessageID
	answers := map[core.RunID]int{}
	for _, r := range db.RunsOf(id) {
		compare.True(t, r.Status.Ended(), "run %s is %s (attempt %d of %s), want it ended", r.ID, r.Status, r.Attempt, r.LeaseOwner)
		if r.StartedAt != nil {
			want = append(want, r.UserMessageID)
		}
		answers[r.ID] = 0
		if r.Status == core.RunSucceeded {
			answers[r.ID] = 1
		}
	}
	var got []core.MessageID
	for _, m := range db.Log(id) {
		switch {
		case m.Role == core.RoleUser:
			got = append(got, m.ID)
		case m.Role == core.RoleAssistant && m.Status == core.MessageComplete && len(m.ToolCalls) == 0:
			answers[m.RunID]--
		}
	}
	compare.True(t, fmt.Sprint(got) == fmt.Sprint(want), "got user messages %v in the log, want %v", got, want)
	for run, n := range answers {
		compare.Equal(t, "answers that run "+string(run)+" lacks", 0, n)
	}
}

// usageRecords is what everybody spent, and since when they were asked.
type usageRecords struct {
	core.UsageStore

	spent core.Spent
	err   error
	asked []time.Time
}

func (b *usageRecords) Spent(_ context.Context, _ string, since time.Time) (core.Spent, error) {
	b.asked = append(b.asked, since)
	return b.spent, b.err
}

// priced is a model whose calls have a cost.
var priced = llm.Info{Name: "priced", Provider: "openai", InputPrice: 1}

// A limit in US dollars refuses models whose cost it would not see; what costs nothing
// is seen, and a limit in tokens sees every model.
func TestBudgetCheckRefusesModelsWithoutPrice(t *testing.T) {
	t.Parallel()
	limits := map[string]runs.DailyLimit{"usd": {MicroUSD: 1}, "tokens": {Tokens: 1}}
	for _, c := range []struct {
		owner   string
		model   llm.Info
		refused bool
	}{
		{"usd", llm.Info{Name: "m", Provider: "openai"}, true},
		{"usd", priced, false},
		{"usd", llm.Info{Name: "demo", Provider: "demo"}, false},
		{"usd", llm.Info{Name: "m", Provider: "ollama"}, false},
		{"tokens", llm.Info{Name: "m", Provider: "openai"}, false},
		{"nobody", llm.Info{Name: "m", Provider: "openai"}, false},
	} {
		err := runs.NewBudget(&usageRecords{}, limits, time.Now).Check(t.Context(), c.owner, c.model)
		var shown *core.Error
		refused := errors.As(err, &shown) && shown.Code == core.CodeModelUnpriced && errors.Is(err, core.ErrUnprocessable)
		compare.Equal(t, "with: want refused", []any{c.refused, c.refused}, []any{refused, (err != nil)})
	}
}

// Spend limits are per key and day of UTC.
func TestBudgetCheck(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 1, 30, 0, 0, time.FixedZone("", 3*3600)) // 22:30 of the day before, in UTC
	limits := map[string]runs.DailyLimit{"usd": {MicroUSD: 1_500_000}, "tokens": {Tokens: 1000}, "both": {MicroUSD: 1_500_000, Tokens: 1000}}
	const until = " a day is reached; it begins anew at 2026-03-01T00:00:00Z, or the operator raises it (auth.limits)"
	for _, c := range []struct {
		owner string
		spent core.Spent
		want  string
	}{
		{"nobody", core.Spent{Tokens: 1 << 40, MicroUSD: 1 << 40}, ""},
		{"usd", core.Spent{Tokens: 1 << 40, MicroUSD: 1_499_999}, ""},
		{"usd", core.Spent{MicroUSD: 1_500_000}, "the limit of 1.5 US dollars" + until},
		{"tokens", core.Spent{Tokens: 999, MicroUSD: 1 << 40}, ""},
		{"tokens", core.Spent{Tokens: 1000}, "the limit of 1000 tokens" + until},
		{"both", core.Spent{Tokens: 1001, MicroUSD: 1}, "the limit of 1000 tokens" + until},
		{"both", core.Spent{}, ""},
	} {
		b := &usageRecords{spent: c.spent}
		err := runs.NewBudget(b, limits, func() time.Time { return now }).Check(t.Context(), c.owner, priced)
		compare.True(t, c.owner != "nobody" || len(b.asked) == 0, "the books were asked for an owner without a limit")
		if c.want == "" {
			compare.Error(t, fmt.Sprintf("%+v", c), nil, err)
			continue
		}
		var e *core.Error
		if !errors.As(err, &e) || e.Message != c.want || !errors.Is(err, core.ErrRateLimited) || e.Code != core.CodeSpendLimit || e.RetryAfter != 90*time.Minute {
			t.Errorf("%+v: got %#v, want %q for 90 min", c, err, c.want)
		}
		if want := time.Date(2026, 2, 28, 0, 0, 0, 0, time.UTC); !b.asked[0].Equal(want) {
			t.Errorf("asked since %s, want %s", b.asked[0], want)
		}
	}
	b := &usageRecords{err: errors.New("disk on fire")}
	compare.Error(t, "err: want that of the books", b.err, runs.NewBudget(b, limits, time.Now).Check(t.Context(), "usd", priced))
}
