package runs_test

import (
	"context"
	"errors"
	"fmt"
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
	"bobbin/tests/must"
)

func TestNothingIsExecutedBeforeRun(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, coretest.New(), "w", runs.Limits{}, answer)
		run := p.accept(t, "hello")
		synctest.Wait()
		p.wantStatus(t, run, core.RunQueued)
		p.run(t)
		synctest.Wait()
		compare.Equal(t, "attempt", 1, p.wantStatus(t, run, core.RunSucceeded).Attempt)
		p.wantTexts(t, "hello", "re: hello")
	})
}

// CONVENTIONS, Errors: a panic in a run becomes a failed run.
func TestPanicBecomesAFailedRun(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, coretest.New(), "w", runs.Limits{}, func(ctx context.Context, j *runs.Recorder, run core.Run) error {
			if run.Input.Content == "boom" {
				panic("secret of the house")
			}
			return answer(ctx, j, run)
		}).run(t)
		run := p.accept(t, "boom")
		p.accept(t, "next")
		synctest.Wait()
		got := p.wantStatus(t, run, core.RunFailed)
		compare.True(t, got.Error != nil && got.Error.Code == "internal" && !strings.Contains(got.Error.Message, "secret"), "got error %+v, want code internal and nothing from inside", got.Error)
		p.wantTexts(t, "boom", "next", "re: next")
		p.stop()
		for _, want := range []string{"secret of the house", "goroutine"} {
			compare.Contains(t, "log without: want the panic with its stack", want, p.log.String())
		}
	})
}

func TestErrorsOfRuns(t *testing.T) {
	t.Parallel()
	model := func(kind llm.ErrorKind) error {
		return fmt.Errorf("node: %w", &llm.Error{Kind: kind, Message: "sk-secret", Provider: "openai"})
	}
	for _, c := range []struct {
		name    string
		err     error
		code    string
		message string // part of it
	}{
		{"context floor", core.Errorf(core.ErrContextFloor, "the system prompt alone is too long"), "context_floor", "system prompt alone"},
		{"context floor without words", fmt.Errorf("x: %w", core.ErrContextFloor), "context_floor", "larger window"},
		{"step limit", &core.Error{Kind: core.ErrUnprocessable, Code: "step_limit", Message: "too many steps"}, "step_limit", "too many steps"},
		{"rate limit", model(llm.KindRateLimit), "model_rate_limit", "Wait"},
		{"auth", model(llm.KindAuth), "model_auth", "key"},
		{"timeout of the model", model(llm.KindTimeout), "model_timeout", "in time"},
		{"overloaded", model(llm.KindOverloaded), "model_overloaded", "later"},
		{"context length", model(llm.KindContextLength), "model_context_length", "window"},
		{"no such model", model(llm.KindNotFound), "model_not_found", "another"},
		{"invalid", model(llm.KindInvalid), "model_invalid", "another"},
		{"network", model(llm.KindNetwork), "model_network", "network"},
		{"truncated", model(llm.KindTruncated), "model_truncated", "again"},
		{"filter", model(llm.KindContentFilter), "model_content_filter", "Rephrase"},
		{"empty", model(llm.KindEmpty), "model_empty", "without saying anything"},
		{"limit", model(llm.KindOutputLimit), "model_output_limit", "max_output_tokens"},
		{"compaction", model(llm.KindCompactionRefused), "model_compaction_refused", "summary"},
		{"tool changes", model(llm.KindToolChangesRefused), "model_tool_changes_refused", "tools"},
		{"unknown", model(llm.KindUnknown), "model_error", "another model"},
		{"a new kind", model("empty"), "model_empty", "another model"},
		{"model without more", core.ErrModel, "model_error", "another model"},
		{"timeout", core.Errorf(core.ErrTimeout, "the summary took too long"), "timeout", "summary"},
		{"deadline", context.DeadlineExceeded, "timeout", "time limit"},
		{"agent is gone", core.Errorf(core.ErrNotFound, "agent bob does not exist"), "not_found", "bob"},
		{"anything else", errors.New("pq: password wrong"), "internal", "operator"},
		{"no end", nil, "internal", "operator"},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				p := newProcess(t, coretest.New(), "w", runs.Limits{}, func(context.Context, *runs.Recorder, core.Run) error {
					return c.err
				}).run(t)
				run := p.accept(t, "hello")
				synctest.Wait()
				got := p.wantStatus(t, run, core.RunFailed)
				if got.Error == nil || got.Error.Code != c.code || !strings.Contains(got.Error.Message, c.message) {
					t.Fatalf("got error %+v, want code %s and a message with %q", got.Error, c.code, c.message)
				}
				compare.True(t, !strings.Contains(got.Error.Message, "secret") && !strings.Contains(got.Error.Message, "pq:"), "got message %q, want nothing from inside", got.Error.Message)
			})
		})
	}
}

func TestRunTimeLimit(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, coretest.New(), "w", runs.Limits{}, hang).run(t)
		begin := time.Now()
		run := p.accept(t, "hello")
		<-time.After(9 * time.Minute)
		p.wantStatus(t, run, core.RunRunning)
		<-time.After(2 * time.Minute)
		got := p.wantStatus(t, run, core.RunFailed)
		compare.True(t, got.Error != nil && got.Error.Code == "run_timeout", "got error %+v, want code run_timeout", got.Error)
		compare.Equal(t, "the end after: want 10 min", 10*time.Minute, got.FinishedAt.Sub(begin).Round(time.Second))
	})
}

// toolRun calls two tools, stores the first result, says half a sentence behind a thought, and
// ends with end.
func toolRun(end execute) execute {
	return func(ctx context.Context, j *runs.Recorder, run core.Run) error {
		call := message(run, core.RoleAssistant, "")
		call.ToolCalls = []core.ToolCall{{ID: "c1", Name: "clock"}, {ID: "c2", Name: "mail"}, {ID: "c3", Name: "calc"}}
		result := message(run, core.RoleTool, "noon")
		result.ToolCallID = "c1"
		if _, err := j.Append(ctx, write(run, call, result)); err != nil {
			return err
		}
		say(ctx, j, run, "m9", 0, "Hm.</think>half a ")
		say(ctx, j, run, "m9", 18, "sentence")
		return end(ctx, j, run)
	}
}

// Failed and canceled runs write results for their open tool calls in the same transaction.
func TestFailedRunAnswersItsOpenCalls(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, coretest.New(), "w", runs.Limits{}, toolRun(func(context.Context, *runs.Recorder, core.Run) error {
			return errors.New("disk on fire")
		})).run(t)
		run := p.accept(t, "hello")
		synctest.Wait()
		p.wantStatus(t, run, core.RunFailed)
		<-time.After(2 * time.Second)
		compare.Equal(t, "saves of a run that has ended", 0, p.db.CallCount("SavePartial"))
		const open = "error: the call was interrupted; whether it took effect is not known"
		p.wantTexts(t, "hello", "", "noon", open, open)
		log := p.db.Log(p.session.ID)
		if a, b := log[3], log[4]; a.ToolCallID != "c2" || b.ToolCallID != "c3" || a.ToolName != "mail" ||
			a.Status != core.MessageFailed || a.TokenCount != len(open) {
			t.Errorf("got results %+v and %+v, want them for c2 and c3, in order", a, b)
		}
		types := p.types()
		compare.Equal(t, "last events", []core.EventType{core.EventMessageDiscarded, core.EventRunFailed}, types[len(types)-2:])
	})
}

func TestCanceledRunKeepsWhatWasSaid(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, coretest.New(), "w", runs.Limits{}, func(ctx context.Context, j *runs.Recorder, run core.Run) error {
			if run.Input.Content == "next" {
				return answer(ctx, j, run)
			}
			return toolRun(hang)(ctx, j, run)
		}).run(t)
		run := p.accept(t, "hello")
		p.accept(t, "next")
		synctest.Wait()
		compare.True(t, p.service.Cancel(run.ID), "got false from Cancel, want true")
		p.service.Cancel(run.ID)
		synctest.Wait()
		got := p.wantStatus(t, run, core.RunCanceled)
		log := p.db.Log(p.session.ID)
		partial := log[5]
		if partial.ID != "m9" || partial.Content != "half a sentence" || partial.Status != core.MessagePartial || got.AnswerID != "m9" {
			t.Errorf("got %+v and answer %s, want the partial message with the id of its deltas", partial, got.AnswerID)
		}
		compare.Equal(t, "writes: the end is one", 3, p.db.CallCount("Write")) // the calls, the end, the next answer
		compare.Equal(t, "last: want the next run's answer", "re: next", log[len(log)-1].Content)
	})
}

func TestCanceledRunThatOnlyThoughtTakesItBack(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, coretest.New(), "w", runs.Limits{}, func(ctx context.Context, j *runs.Recorder, run core.Run) error {
			e := core.NewEvent(run.SessionID, run.ID, core.EventReasoningDelta,
				core.DeltaData{MessageID: "m1", Attempt: run.Attempt, Text: "hm"})
			j.Delta(ctx, e)
			return hang(ctx, j, run)
		}).run(t)
		run := p.accept(t, "hello")
		synctest.Wait()
		p.service.Cancel(run.ID)
		synctest.Wait()
		p.wantStatus(t, run, core.RunCanceled)
		p.wantTexts(t, "hello")
		types := p.types()
		compare.True(t, slices.Contains(types, core.EventMessageDiscarded), "got events %v, want message.discarded", types)
	})
}

// A cancel may come between the transaction that claims a run and Start.
func TestCancelBeforeStart(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, coretest.New(), "w", runs.Limits{}, hang).run(t)
		a, err := p.service.Begin(t.Context(), func(worker string) (core.Accepted, error) {
			a, err := p.db.Runs.Accept(t.Context(), ann, core.AcceptRun{SessionID: p.session.ID, Worker: worker})
			compare.True(t, !p.service.Cancel(a.Run.ID), "got true from Cancel, want false: it is not at work yet")
			return a, err
		})
		must.Do(t, err)
		synctest.Wait()
		p.wantStatus(t, a.Run, core.RunCanceled)
	})
}

// waiter is an engine whose run calls two tools, the first of which needs an approval
// within the time; once that is decided it answers.
func waiter(expiry time.Duration) execute {
	return func(ctx context.Context, j *runs.Recorder, run core.Run) error {
		w := core.RunWrite{RunID: run.ID, SessionID: run.SessionID, Attempt: run.Attempt}
		if run.Attempt == 1 {
			calls := []core.ToolCall{{ID: "c1", Name: "pay"}, {ID: "c2", Name: "mail"}}
			w.Messages = []core.Message{{ID: core.NewID[core.MessageID](), Role: core.RoleAssistant, ToolCalls: calls, RunID: run.ID}}
			w.Wait = &core.RunWait{Expiry: expiry, Approvals: []core.Approval{{ToolCallID: "c1", Tool: "pay", Mode: core.ApprovalAlways}}}
			_, err := j.Append(ctx, w)
			return err
		}
		for _, id := range []string{"c1", "c2"} {
			w.Messages = append(w.Messages, core.Message{ID: core.NewID[core.MessageID](), Role: core.RoleTool, ToolCallID: id, Content: id, RunID: run.ID})
		}
		w.End = &core.RunEnd{Status: core.RunSucceeded}
		_, err := j.Append(ctx, w)
		return err
	}
}

// A waiting run is executed nowhere. If its approval expires, a sweep continues it, and then
// the session's next one.
func TestWaitingRunExpires(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, coretest.New(), "w", runs.Limits{}, waiter(time.Minute)).run(t)
		run := p.accept(t, "pay")
		synctest.Wait()
		p.wantStatus(t, run, core.RunWaiting)
		compare.Equal(t, "runs are at work", 0, p.service.Active())
		<-time.After(59 * time.Second)
		p.wantStatus(t, run, core.RunWaiting)
		<-time.After(7 * time.Second)
		p.wantStatus(t, run, core.RunSucceeded)
		compare.Equal(t, "asked[0].Status: want it expired", core.ApprovalExpired, must.Get(p.db.Runs.Approvals(t.Context(), run.ID))(t)[0].Status)
	})
}

// A waiting run that is canceled gets results for its open calls; a call that was not approved
// never began.
func TestWaitingRunIsCanceled(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newProcess(t, coretest.New(), "w", runs.Limits{}, waiter(0)).run(t)
		run := p.accept(t, "pay")
		synctest.Wait()
		got, _, err := p.db.Runs.RequestCancel(t.Context(), ann, run.ID)
		must.True(t, err == nil && got.Suspended(), "got %+v, %v", got, err)
		<-time.After(6 * time.Second) // the sweep finds it
		p.wantStatus(t, run, core.RunCanceled)
		p.wantTexts(t, "pay", "", "not approved: the run was canceled", "error: the call was interrupted; whether it took effect is not known")
	})
}

// A run that was canceled in another process, unknown to this one so far, does not wait.
func TestCanceledRunDoesNotWait(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := coretest.New()
		p := newProcess(t, db, "w", runs.Limits{}, func(ctx context.Context, j *runs.Recorder, run core.Run) error {
			if _, _, err := db.Runs.RequestCancel(ctx, ann, run.ID); err != nil {
				return err
			}
			return waiter(0)(ctx, j, run)
		}).run(t)
		run := p.accept(t, "pay")
		synctest.Wait()
		p.wantStatus(t, run, core.RunCanceled)
	})
}

// Approvals that cannot be read delay the end of a run, and are not lost.
func TestEndWaitsForApprovals(t *testing.T) {
	simulate(t, func(t *testing.T) {
		db := coretest.New()
		p := newProcess(t, db, "w", runs.Limits{}, toolRun(func(context.Context, *runs.Recorder, core.Run) error {
			return errors.New("disk on fire")
		})).run(t)
		failed := 0
		db.Before(func(call string) error {
			if call != "Approvals" || failed == 2 {
				return nil
			}
			failed++
			return errors.New("away")
		})
		run := p.accept(t, "hello")
		<-time.After(time.Second)
		p.wantStatus(t, run, core.RunFailed)
		compare.Equal(t, "reads in vain", 2, failed)
	})
}
