package eval

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"bobbin/app/agents"
	"bobbin/app/agents/tools"
	"bobbin/app/chat"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/llm"
	"bobbin/app/core/prompttext"
	"bobbin/app/core/tokens"
	"bobbin/app/runs"
	"bobbin/app/telemetry"
	"bobbin/app/wire"
)

// stage is a Bobbin for one replay: the engine, the keeper, the runs and the search
// of a server, over a database that is gone afterwards, with models and tools that
// answer as recorded.
type stage struct {
	wire.Deps

	engine  wire.Engine
	chat    *chat.Service
	search  core.SearchStore // nil = the agent does not have the tool
	agent   core.Agent
	session core.Session
	lastSeq int64 // of the last event that was returned
	close   func() error
}

// stageSettings are what a stage is made of.
type stageSettings struct {
	cfg        config.Config
	logger     *slog.Logger
	counter    llm.TokenCounter
	agent      core.Agent
	tools      *tools.Set
	player     llm.Model
	summarizer llm.Model // nil = the agent's strategy needs none
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
func (st *stage) buildParts(ctx context.Context, s stageSettings) error {
	storage, err := wire.OpenStorage(ctx, s.cfg, s.logger)
	if err != nil {
		return err
	}
	st.onClose(storage.Close)
	stores := wire.NewStores(storage.DB)
	bus, err := wire.OpenBus(ctx, s.cfg.NATS, s.logger)
	if err != nil {
		return err
	}
	st.onClose(func() error { bus.Close(); return nil })
	feed := wire.NewFeed(s.cfg.NATS, bus, stores, nil, s.logger)
	models, err := openRecorded(s)
	if err != nil {
		return err
	}
	st.Deps = wire.Deps{
		Config: s.cfg, Logger: s.logger, Database: storage.DB, Stores: stores, Search: stores.Search, AgentSearch: core.NewAgentSearch(stores.Search),
		Feed: feed, Bus: bus, Counter: s.counter, Models: models, Budget: wire.NewBudget(s.cfg, stores),
		Telemetry: telemetry.New(telemetry.Options{}), Worker: "eval",
	}
	agents := wire.Agents{Catalog: agents.CatalogOf(s.agent), Tools: s.tools, Global: wire.GlobalContext(s.cfg)}
	if st.engine, err = wire.NewEngine(st.Deps, agents); err != nil { //nolint:contextcheck // its background work lives as long as the engine
		return err
	}
	work := wire.NewRuns(st.Deps, st.engine)
	st.chat = wire.NewChat(st.Deps, agents, st.engine, work, wire.NewFiles(st.Deps, ""))
	if slices.Contains(s.agent.Tools, core.ToolSearchHistory) {
		st.search = st.AgentSearch
	}
	st.startRuns(ctx, work)
	st.session, err = st.chat.CreateSession(ctx, st.tenant(), core.Session{})
	return err
}

// openRecorded builds a registry of the two models of a replay.
func openRecorded(s stageSettings) (m wire.Models, err error) {
	models := map[string]llm.Model{stagePlayer: s.player, stageSummarizer: s.summarizer}
	entries := []llm.Entry{{Name: stagePlayer, Provider: stageProvider, Model: stagePlayer}, {Name: stageSummarizer, Provider: stageProvider, Model: stageSummarizer}}
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
			if model != nil && model.Info().Name == name && model.Info().PriorFactor > 0 {
				return model.Info().PriorFactor
			}
		}
		return 1
	})
	return m, err
}

// startRuns executes runs until the stage is closed.
func (st *stage) startRuns(ctx context.Context, work *runs.Runner) {
	ctx, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		if err := work.Run(ctx); err != nil {
			st.Logger.ErrorContext(ctx, "runs of the replay", "err", err)
		}
	})
	st.onClose(func() error { stop(); done.Wait(); return nil })
}

func (st *stage) tenant() core.Tenant { return core.Tenant{Owner: core.LocalOwner} }

// Send says the message and waits until its run has ended.
func (st *stage) Send(ctx context.Context, m core.Message) (core.Run, error) {
	accepted, err := st.chat.Send(ctx, st.tenant(), core.SendMessage{SessionID: st.session.ID, Content: m.Content, Source: m.Source, Author: m.Author})
	if err != nil {
		return core.Run{}, err
	}
	out, err := st.chat.Wait(ctx, st.tenant(), accepted.Run)
	return out.Run, err
}

// SetRecorded gives the newest messages the authors and times of the recorded ones, which search
// counts: runs store the clock's. The prompts of a conversation of two show neither.
func (st *stage) SetRecorded(ctx context.Context, recorded []core.Message) error {
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

// Append stores messages that nobody answers.
func (st *stage) Append(ctx context.Context, messages []core.Message) error {
	messages = slices.Clone(messages) // other replays have them, too
	for i := range messages {
		messages[i].TokenCount = st.Counter.Message(messages[i])
	}
	_, err := st.Stores.Messages.Append(ctx, st.tenant(), core.AppendMessages{SessionID: st.session.ID, Messages: messages, Import: true})
	return err
}

// Settle makes the summaries that a server makes in the background, and waits for
// them: nobody else does here, so that it is the same in each replay.
func (st *stage) Settle(ctx context.Context) error {
	err := st.engine.Compactor.SummarizeDue(ctx, st.tenant(), st.session.ID)
	if errors.Is(err, core.ErrContextFloor) {
		return nil // the next run says so, too
	}
	return err
}

// eventPage is how many events are read at once.
const eventPage = 500

// Events returns what happened in the session since the last call.
func (st *stage) Events(ctx context.Context) ([]core.Event, error) {
	var all []core.Event
	for {
		page, err := st.Stores.Events.After(ctx, st.session.ID, st.lastSeq, eventPage)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			return all, nil
		}
		all = append(all, page...)
		st.lastSeq = page[len(page)-1].Seq
	}
}

// Report says what the next prompt would be made of.
func (st *stage) Report(ctx context.Context) (core.ContextReport, error) {
	return st.engine.Inspector.Report(ctx, st.tenant(), st.session.ID)
}

// Summaries counts the summaries that came into use.
func (st *stage) Summaries(ctx context.Context) (int, error) {
	session, err := st.Stores.Sessions.Get(ctx, st.tenant(), st.session.ID)
	return session.SummaryCount, err
}

// Search returns the first quotations that search_history finds for the text; none of
// one that it cannot look for. false = the agent has no such tool.
func (st *stage) Search(ctx context.Context, text string, limit int) ([]string, bool, error) {
	if st.search == nil {
		return nil, false, nil
	}
	page, err := tools.FindHistory(ctx, st.search, st.session, core.SearchQuery{PageQuery: core.PageQuery{Limit: limit}, Text: text})
	if errors.Is(err, core.ErrInvalid) {
		return nil, true, nil // the model would read why and ask in other words
	}
	var quotes []string
	for _, hit := range page.Items {
		quotes = append(quotes, prompttext.Harmless(hit.Excerpt))
	}
	return quotes, true, err
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
