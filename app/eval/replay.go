package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"bobbin/app/core"
)

// Bobbin is the program that a conversation is replayed in, with one session. What
// it returns is committed, and nothing of it is at work any more.
type Bobbin interface {
	// Send says the user's message and returns the run that answered it when it has
	// ended, in whatever way.
	Send(ctx context.Context, message core.Message) (core.Run, error)
	// SetRecorded gives the newest messages, those of a run, the authors and times of the
	// recorded ones.
	SetRecorded(ctx context.Context, messages []core.Message) error
	// Append stores messages that nobody answers.
	Append(ctx context.Context, messages []core.Message) error
	// Settle does what is to be done between two messages, such as summaries that
	// nobody waits for, and returns when it is done.
	Settle(ctx context.Context) error
	// Events returns what happened in the session since the last call.
	Events(ctx context.Context) ([]core.Event, error)
	// Report says what the next prompt would be made of.
	Report(ctx context.Context) (core.ContextReport, error)
	// Summaries counts the summaries that came into use.
	Summaries(ctx context.Context) (int, error)
	// Search returns the first quotations, at most limit, that the tool search_history
	// finds for the text; false = the agent does not have that tool.
	Search(ctx context.Context, text string, limit int) (quotes []string, able bool, err error)
}

// Replayed is one conversation to be replayed in one Bobbin.
type Replayed struct {
	Policy       string
	Conversation Conversation
	Facts        []Fact
	Bobbin       Bobbin
	Player       *Player
	Summarizer   string
	Spent        func() Expense // what the summaries cost so far
	Progress     func(turns int)
}

// Replay says the whole conversation and measures. A run that failed ends it, and is
// in the result. An error is one of the Bobbin, or the end of ctx.
func Replay(ctx context.Context, r Replayed) (Result, error) {
	out, err := r.playTurns(ctx)
	if err != nil {
		return out, err
	}
	report, err := r.Bobbin.Report(ctx)
	if err != nil {
		return out, err
	}
	out.Budget = Budget{Window: report.Window, Reserve: report.Reserve, Usable: report.Usable, Trigger: report.Trigger, Landing: report.Landing}
	out.Coverage = report.Coverage
	if out.Summaries, err = r.Bobbin.Summaries(ctx); err != nil {
		return out, err
	}
	out.Summarizer.Expense = r.Spent()
	out.addTurns()
	f := &out.Facts
	last := r.Player.lastRequest()
	prompt := newText("")
	blocks := slices.Clone(last.System)
	for _, m := range last.Messages {
		blocks = append(blocks, m.Content)
		if !isSummary(m.Content) {
			prompt.addPiece(messageTexts(m.Content, m.ToolCalls))
		}
	}
	summary := strings.Join(slices.DeleteFunc(blocks, func(b string) bool { return !isSummary(b) }), "\n") + "\n"
	whole := newText(summary)
	f.Unreachable = []Fact{}
	for _, fact := range r.Facts {
		rank, err := r.rankInSearch(ctx, fact)
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
		case prompt.hasFact(fact):
			f.Prompt++
		case whole.hasFact(fact):
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

// playTurns says the whole conversation; the sums of the result are still to be made.
func (r Replayed) playTurns(ctx context.Context) (Result, error) {
	out := Result{Policy: r.Policy, Summarizer: Summarizer{Name: r.Summarizer}, Turns: []Turned{}}
	out.Facts.Planted = len(r.Facts)
	if err := r.appendMessages(ctx, r.Conversation.Opening); err != nil {
		return out, err
	}
	for i, t := range r.Conversation.Turns {
		turned, failed, err := r.playTurn(ctx, t)
		if err != nil {
			return out, fmt.Errorf("turn %d: %w", i+1, err)
		}
		turned.Turn = i + 1
		out.Turns = append(out.Turns, turned)
		if failed != nil {
			out.Failed = &Failure{Turn: i + 1, RunError: *failed}
			break
		}
		r.Progress(i + 1)
	}
	return out, nil
}

// appendMessages stores messages without a run.
func (r Replayed) appendMessages(ctx context.Context, messages []core.Message) error {
	if len(messages) == 0 {
		return nil
	}
	r.Player.countHeard(messages...)
	return r.Bobbin.Append(ctx, messages)
}

// playTurn says one question; failed is why its run did not end well.
func (r Replayed) playTurn(ctx context.Context, t Turn) (turned Turned, failed *core.RunError, err error) {
	turned = Turned{Prompts: []Prompt{}, Compactions: []Compaction{}}
	if len(t.Steps) == 0 {
		if err = r.appendMessages(ctx, append([]core.Message{t.Question}, t.Rest...)); err != nil {
			return turned, nil, err
		}
		return turned, nil, r.settleTurn(ctx, &turned)
	}
	r.Player.countHeard(t.Question)
	r.Player.loadAnswers(t.Steps)
	run, err := r.Bobbin.Send(ctx, t.Question)
	if err != nil {
		return turned, nil, err
	}
	prompts, left := r.Player.takePrompts()
	turned.Prompts = append(turned.Prompts, prompts...)
	if run.Status == core.RunSucceeded && left > 0 {
		return turned, nil, fmt.Errorf("%d recorded answers were not asked for", left)
	}
	if run.Status != core.RunSucceeded {
		if failed = run.Error; failed == nil {
			failed = &core.RunError{Code: string(run.Status), Message: "The run ended without an answer."}
		}
		return turned, failed, r.recordEvents(ctx, &turned, false)
	}
	var report core.ContextReport
	if err := json.Unmarshal(run.Context, &report); err != nil {
		return turned, nil, fmt.Errorf("context report of the run: %w", err)
	}
	turned.Rungs = report.Rungs
	if err := r.Bobbin.SetRecorded(ctx, t.answers()); err != nil {
		return turned, nil, fmt.Errorf("authors and times: %w", err)
	}
	if err := r.appendMessages(ctx, t.Rest); err != nil {
		return turned, nil, err
	}
	return turned, nil, r.settleTurn(ctx, &turned)
}

// settleTurn ends a turn: what was not done in it is done before the next one.
func (r Replayed) settleTurn(ctx context.Context, turned *Turned) error {
	if err := r.recordEvents(ctx, turned, false); err != nil {
		return err
	}
	if err := r.Bobbin.Settle(ctx); err != nil {
		return fmt.Errorf("between two turns: %w", err)
	}
	return r.recordEvents(ctx, turned, true)
}

// recordEvents notes what context management told of the turn, or after it.
func (r Replayed) recordEvents(ctx context.Context, turned *Turned, after bool) error {
	events, err := r.Bobbin.Events(ctx)
	for _, e := range events {
		if !strings.HasPrefix(string(e.Type), "context.") {
			continue
		}
		data, ok := e.Data.(core.ContextData)
		if !ok {
			return fmt.Errorf("event %s has data of type %T", e.Type, e.Data)
		}
		turned.Compactions = append(turned.Compactions, Compaction{Event: string(e.Type), After: after, ContextData: data})
	}
	return err
}
