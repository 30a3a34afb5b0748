package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"bobbin/app/core"
)

// replay says the whole conversation and measures. A run that failed ends it, and is
// in the result. An error is one of the stage, or the end of ctx.
func (st *stage) replay(ctx context.Context, policy string) (Result, error) {
	out, err := st.playTurns(ctx, policy)
	if err != nil {
		return out, err
	}
	report, err := st.engine.Inspector.Report(ctx, st.tenant(), st.session.ID)
	if err != nil {
		return out, err
	}
	out.Budget = Budget{Window: report.Window, Reserve: report.Reserve, Usable: report.Usable, Trigger: report.Trigger, Landing: report.Landing}
	out.Coverage = report.Coverage
	session, err := st.Stores.Sessions.Get(ctx, st.tenant(), st.session.ID)
	if err != nil {
		return out, err
	}
	out.Summaries = session.SummaryCount
	if err := st.readUsage(ctx, &out.Summarizer); err != nil {
		return out, err
	}
	out.addTurns()
	f := &out.Facts
	last := st.player.lastRequest()
	prompt, summaries := []core.Message{}, slices.DeleteFunc(slices.Clone(last.System), func(b string) bool { return !isSummary(b) })
	for _, m := range last.Messages {
		if isSummary(m.Content) {
			summaries = append(summaries, m.Content)
		} else {
			prompt = append(prompt, core.Message{Content: m.Content, ToolCalls: m.ToolCalls})
		}
	}
	said, summary := textOf(prompt...), plainText(strings.Join(summaries, "\n"))
	f.Unreachable = []Fact{}
	for _, fact := range st.facts {
		rank, err := st.rankInSearch(ctx, fact)
		if err != nil {
			return out, err
		}
		if fact.Ask != "" {
			f.Asked++
			if rank > 0 {
				f.SearchAlone.First20++
			}
			if rank > 0 && rank <= firstHits {
				f.SearchAlone.First5++
			}
		}
		switch {
		case hasFact(said, fact):
			f.Prompt++
		case hasFact(summary, fact):
			f.Summary++
		case rank > 0 && rank <= firstHits:
			f.First5++
		case rank > 0:
			f.First20++
		default:
			f.Unreachable = append(f.Unreachable, fact)
		}
	}
	f.Reachable = f.Planted - len(f.Unreachable)
	return out, nil
}

// readUsage reads from the books what the summaries took.
func (st *stage) readUsage(ctx context.Context, s *Summarizer) error {
	usage, err := st.Stores.ModelCalls.Usage(ctx, st.tenant(), core.UsageQuery{GroupBy: core.UsageByModel, To: time.Now().Add(time.Hour)})
	for _, row := range usage.Items {
		if st.sums != nil && row.Key == st.sums.Info().Name {
			s.Calls, s.InputTokens, s.OutputTokens = row.Calls, row.InputTokens, row.OutputTokens
		}
	}
	return err
}

// playTurns says the whole conversation; the sums of the result are still to be made.
func (st *stage) playTurns(ctx context.Context, policy string) (Result, error) {
	out := Result{Policy: policy, Summarizer: Summarizer{Name: st.Summarizer}, Turns: []Turned{}}
	out.Facts.Planted = len(st.facts)
	if err := st.appendMessages(ctx, st.talk.Opening); err != nil {
		return out, err
	}
	for i, t := range st.talk.Turns {
		turned, failed, err := st.playTurn(ctx, t)
		if err != nil {
			return out, fmt.Errorf("turn %d: %w", i+1, err)
		}
		turned.Turn = i + 1
		out.Turns = append(out.Turns, turned)
		if failed != nil {
			out.Failed = &Failure{Turn: i + 1, RunError: *failed}
			break
		}
		st.tellProgress(policy, i+1)
	}
	return out, nil
}

// appendMessages stores messages that nobody answers.
func (st *stage) appendMessages(ctx context.Context, messages []core.Message) error {
	if len(messages) == 0 {
		return nil
	}
	st.player.countHeard(messages...)
	messages = slices.Clone(messages) // other replays have them, too
	for i := range messages {
		messages[i].TokenCount = st.Counter.Message(messages[i])
	}
	_, err := st.Stores.Messages.Append(ctx, st.tenant(), core.AppendMessages{SessionID: st.session.ID, Messages: messages, Import: true})
	return err
}

// playTurn says one question; failed is why its run did not end well.
func (st *stage) playTurn(ctx context.Context, t Turn) (turned Turned, failed *core.RunError, err error) {
	turned = Turned{Prompts: []Prompt{}, Compactions: []Compaction{}}
	if len(t.Steps) == 0 {
		if err = st.appendMessages(ctx, append([]core.Message{t.Question}, t.Rest...)); err != nil {
			return turned, nil, err
		}
		return turned, nil, st.settleTurn(ctx, &turned)
	}
	st.player.countHeard(t.Question)
	st.player.loadAnswers(t.Steps)
	q := t.Question
	accepted, err := st.chat.Send(ctx, st.tenant(), core.SendMessage{SessionID: st.session.ID, Content: q.Content, Source: q.Source, Author: q.Author})
	if err != nil {
		return turned, nil, err
	}
	out, err := st.chat.Wait(ctx, st.tenant(), accepted.Run)
	if err != nil {
		return turned, nil, err
	}
	run := out.Run
	prompts, left := st.player.takePrompts()
	turned.Prompts = append(turned.Prompts, prompts...)
	if run.Status == core.RunSucceeded && left > 0 {
		return turned, nil, fmt.Errorf("%d recorded answers were not asked for", left)
	}
	if run.Status != core.RunSucceeded {
		if failed = run.Error; failed == nil {
			failed = &core.RunError{Code: string(run.Status), Message: "The run ended without an answer."}
		}
		return turned, failed, st.recordEvents(ctx, &turned, false)
	}
	var report core.ContextReport
	if err := json.Unmarshal(run.Context, &report); err != nil {
		return turned, nil, fmt.Errorf("context report of the run: %w", err)
	}
	turned.Rungs = report.Rungs
	if err := st.setRecorded(ctx, t.answers()); err != nil {
		return turned, nil, fmt.Errorf("authors and times: %w", err)
	}
	if err := st.appendMessages(ctx, t.Rest); err != nil {
		return turned, nil, err
	}
	return turned, nil, st.settleTurn(ctx, &turned)
}

// settleTurn ends a turn. It makes the summaries that a server makes in the background: nobody else does here, so
// that they are the same in each replay.
func (st *stage) settleTurn(ctx context.Context, turned *Turned) error {
	if err := st.recordEvents(ctx, turned, false); err != nil {
		return err
	}
	err := st.engine.Compactor.SummarizeDue(ctx, st.tenant(), st.session.ID)
	if err != nil && !errors.Is(err, core.ErrContextFloor) { // the next run says so, too
		return fmt.Errorf("between two turns: %w", err)
	}
	return st.recordEvents(ctx, turned, true)
}

// eventPage is how many events are read at once.
const eventPage = 500

// recordEvents notes what context management told since the last call: of the turn, or after it.
func (st *stage) recordEvents(ctx context.Context, turned *Turned, after bool) error {
	for {
		page, err := st.Stores.Events.After(ctx, st.session.ID, st.lastSeq, eventPage)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, e := range page {
			st.lastSeq = e.Seq
			if data, ok := e.Data.(core.ContextData); ok {
				turned.Compactions = append(turned.Compactions, Compaction{Event: string(e.Type), After: after, ContextData: data})
			}
		}
	}
}
