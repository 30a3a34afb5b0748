package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"bobbin/app/agents"
	"bobbin/app/agents/tools"
	"bobbin/app/chat"
	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/app/wire"
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

// stage is a Bobbin for one replay: the engine, the keeper, the runs and the search
// of a server, over a database that is gone afterwards, with models and tools that
// answer as recorded.
type stage struct {
	*evaluator
	wire.Deps

	agent   core.Agent
	player  *Player
	engine  wire.Engine
	chat    *chat.Service
	session core.Session
	lastSeq int64 // of the last event that was noted
	close   func() error
}

// The names that the models of a stage have there, whatever they are called.
const (
	stagePlayer     = "recording"
	stageSummarizer = "summarizer"
	stageProvider   = "replay"
)

// onClose adds what close does first.
func (st *stage) onClose(do func() error) {
	before := st.close
	st.close = func() error { return errors.Join(do(), before()) }
}

// buildParts opens the stage's database and builds its parts.
func (st *stage) buildParts(ctx context.Context) error {
	storage, err := wire.OpenStorage(ctx, st.Config, st.Logger)
	if err != nil {
		return err
	}
	st.onClose(storage.Close)
	st.Database, st.Stores = storage.DB, wire.NewStores(storage.DB)
	st.Search, st.AgentSearch = st.Stores.Search, core.NewAgentSearch(st.Stores.Search)
	if st.Bus, err = wire.OpenBus(ctx, st.Config.NATS, st.Logger); err != nil {
		return err
	}
	st.onClose(func() error { st.Bus.Close(); return nil })
	st.Feed, st.Budget = wire.NewFeed(st.Config.NATS, st.Bus, st.Stores, nil, st.Logger), wire.NewBudget(st.Config, st.Stores)
	if st.Models, err = st.openRecorded(); err != nil {
		return err
	}
	agents := wire.Agents{Catalog: agents.CatalogOf(st.agent), Tools: st.tools, Global: wire.GlobalContext(st.Config)}
	if st.engine, err = wire.NewEngine(st.Deps, agents); err != nil { //nolint:contextcheck // its background work lives as long as the engine
		return err
	}
	work := wire.NewRuns(st.Deps, st.engine)
	st.chat = wire.NewChat(st.Deps, agents, st.engine, work, wire.NewFiles(st.Deps, ""))
	working, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		if err := work.Run(working); err != nil {
			st.Logger.ErrorContext(working, "runs of the replay", "err", err)
		}
	})
	st.onClose(func() error { stop(); done.Wait(); return nil })
	st.session, err = st.chat.CreateSession(ctx, st.tenant(), core.Session{})
	return err
}

// openRecorded builds a registry of the two models of a replay.
func (st *stage) openRecorded() (m wire.Models, err error) {
	models := map[string]llm.Model{stagePlayer: st.player}
	if st.sums != nil {
		models[stageSummarizer] = st.sums
	}
	entries := []llm.Entry{{Info: llm.Info{Name: stagePlayer, Provider: stageProvider}, Model: stagePlayer}, {Info: llm.Info{Name: stageSummarizer, Provider: stageProvider}, Model: stageSummarizer}}
	m.Registry, err = llm.NewRegistry(entries, func(e llm.Entry) (llm.Model, error) {
		if model := models[e.Name]; model != nil {
			return model, nil
		}
		return nil, core.Errorf(core.ErrNotFound, "this replay has no model %q", e.Name)
	}, llm.Defaults{
		Model: stagePlayer, Env: func(string) string { return "" },
		Lookup: func(string) (window, maxOutput int, factor float64, known bool) { return 0, 0, 0, true },
	})
	m.Calibrator = tokens.NewCalibrator(func(name string) float64 {
		for _, model := range models {
			if model.Info().Name == name && model.Info().PriorFactor > 0 {
				return model.Info().PriorFactor
			}
		}
		return 1
	})
	return m, err
}

func (st *stage) tenant() core.Tenant { return core.Tenant{Owner: core.LocalOwner} }

// setRecorded gives the newest messages the authors and times of the recorded ones, which search
// counts: runs store the clock's. The prompts of a conversation of two show neither.
func (st *stage) setRecorded(ctx context.Context, recorded []core.Message) error {
	if !slices.ContainsFunc(recorded, func(m core.Message) bool { return m.Author != "" || !m.CreatedAt.IsZero() }) {
		return nil
	}
	session, err := st.Stores.Sessions.Get(ctx, st.tenant(), st.session.ID)
	if err != nil {
		return err
	}
	recorded = slices.Clone(recorded) // other replays have them, too
	for i := range recorded {
		recorded[i].Seq = session.LastSeq - int64(len(recorded)-1-i)
	}
	return st.Stores.Messages.SetRecorded(ctx, st.tenant(), st.session.ID, recorded)
}

// recorded returns a tool that answers as a recording says, by the call's id.
func recorded(spec llm.ToolSpec, results map[string]string) *tools.Custom {
	return &tools.Custom{Definition: spec, Repeatable: true, Call: func(_ context.Context, c tools.Call) (string, error) {
		result, ok := results[c.ID]
		if !ok {
			return "", fmt.Errorf("the recording has no result of the call %s", c.ID)
		}
		return result, nil
	}}
}
