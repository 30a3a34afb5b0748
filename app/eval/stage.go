package eval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"bobbin/app/agents"
	"bobbin/app/agents/tools"
	"bobbin/app/chat"
	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/app/wire"
)

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
