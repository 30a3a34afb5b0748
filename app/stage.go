package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"bobbin/app/agents/catalog"
	"bobbin/app/chat"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/app/eval"
	"bobbin/app/tools"
)

// stage is a Bobbin for one replay: the engine, the keeper, the runs and the search
// of a server, over a database that is gone afterwards, with models and tools that
// answer as recorded. It is eval.Bobbin.
type stage struct {
	*App
	chat    *chat.Service
	search  *tools.SearchHistory // nil = the agent has it not
	session core.Session
	seen    int64 // the last event that was returned
	close   func() error
}

// stageSettings are what a stage is made of.
type stageSettings struct {
	cfg        config.Config
	logger     *slog.Logger
	counter    counter
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

// openStage builds a stage in a folder of its own; the caller closes it.
func openStage(ctx context.Context, s stageSettings) (*stage, error) {
	dir, err := os.MkdirTemp("", "bobbin-eval-*")
	if err != nil {
		return nil, fmt.Errorf("temporary folder: %w", err)
	}
	url := "sqlite://" + filepath.Join(dir, "replay.db")
	s.cfg.Database.URL, s.cfg.Titles, s.cfg.DefaultAgent = config.NewSecret(url), false, s.agent.Name
	s.cfg.Auth = config.Auth{}
	st := &stage{App: &App{cfg: s.cfg, log: s.logger, counter: s.counter}}
	st.close = func() error { return errors.Join(st.App.Close(), os.RemoveAll(dir)) }
	if err := st.build(ctx, s); err != nil {
		return nil, errors.Join(err, st.close())
	}
	return st, nil
}

// build is App.build for a stage.
func (st *stage) build(ctx context.Context, s stageSettings) error {
	if err := st.openStorage(ctx); err != nil {
		return err
	}
	st.messages = &growing{messageLog: st.messages}
	if err := st.openRecorded(s); err != nil {
		return err
	}
	st.catalog = catalog.Of(s.agent)
	st.budget = st.newLimiter(ctx)
	st.worker = "eval"
	engine, keeper, journal, err := st.buildEngine(s.tools, globalContext(s.cfg, false))
	if err != nil {
		return err
	}
	st.files = st.buildFiles()
	st.runs = st.buildRuns(engine, journal)
	st.chat = st.buildChat(keeper)
	for _, name := range s.agent.Tools {
		if name == core.ToolSearchHistory {
			st.search = tools.NewSearchHistory(st.repos.search)
		}
	}
	st.work(ctx)
	st.session, err = st.chat.CreateSession(ctx, st.scope(), core.Session{})
	return err
}

// openRecorded builds a registry of the two models of a replay.
func (st *stage) openRecorded(s stageSettings) error {
	models := map[string]llm.Model{stagePlayer: s.player, stageSummarizer: s.summarizer}
	entries := []llm.Entry{{Name: stagePlayer, Provider: stageProvider, Model: stagePlayer}, {Name: stageSummarizer, Provider: stageProvider, Model: stageSummarizer}}
	var err error
	st.models, err = llm.NewRegistry(entries, func(e llm.Entry) (llm.Model, error) {
		if m := models[e.Name]; m != nil {
			return m, nil
		}
		return nil, core.Errorf(core.ErrNotFound, "this replay has no model %q", e.Name)
	}, llm.Defaults{
		Model: stagePlayer, Env: func(string) string { return "" },
		Lookup: func(string) (window, maxOutput int, factor float64, known bool) { return 0, 0, 0, true },
	})
	st.ruler = tokens.NewCalibrator(func(name string) float64 {
		for _, m := range models {
			if m != nil && m.Info().Name == name && m.Info().PriorFactor > 0 {
				return m.Info().PriorFactor
			}
		}
		return 1
	})
	return err
}

// work lets runs begin, until the stage is closed.
func (st *stage) work(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		if err := st.runs.Run(ctx); err != nil {
			st.log.ErrorContext(ctx, "runs of the replay", "err", err)
		}
	})
	before := st.close
	st.close = func() error {
		stop()
		done.Wait()
		return before()
	}
}

func (st *stage) scope() core.Scope { return core.Scope{Owner: core.LocalOwner} }

// Send says the message and waits until its run has ended.
func (st *stage) Send(ctx context.Context, m core.Message) (core.Run, error) {
	accepted, err := st.chat.Send(ctx, st.scope(), core.SendMessage{SessionID: st.session.ID, Content: m.Content, Source: m.Source, Author: m.Author})
	if err != nil {
		return core.Run{}, err
	}
	return st.chat.Wait(ctx, st.scope(), accepted.Run.ID)
}

// Append stores messages that nobody answers.
func (st *stage) Append(ctx context.Context, messages []core.Message) error {
	messages = slices.Clone(messages) // other replays have them, too
	for i := range messages {
		messages[i].TokenCount = st.counter.Message(messages[i])
	}
	_, err := st.repos.messages.Append(ctx, st.scope(), core.AppendMessages{SessionID: st.session.ID, Messages: messages, Import: true})
	return err
}

// Settle makes the summaries that a server makes in the background, and waits for
// them: nobody else does here, so that it is the same in each replay.
func (st *stage) Settle(ctx context.Context) error {
	err := st.keeper.Advance(ctx, st.scope(), st.session.ID)
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
		page, err := st.repos.events.After(ctx, st.session.ID, st.seen, eventPage)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			return all, nil
		}
		all = append(all, page...)
		st.seen = page[len(page)-1].Seq
	}
}

// Report says what the next prompt would be made of.
func (st *stage) Report(ctx context.Context) (core.ContextReport, error) {
	return st.keeper.Report(ctx, st.scope(), st.session.ID)
}

// Summaries counts the summaries that came into use.
func (st *stage) Summaries(ctx context.Context) (int, error) {
	session, err := st.repos.sessions.Get(ctx, st.scope(), st.session.ID)
	return session.SummaryCount, err
}

// Search is what search_history answers to the query.
func (st *stage) Search(ctx context.Context, query string) (string, bool, error) {
	if st.search == nil {
		return "", false, nil
	}
	arguments, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		return "", true, fmt.Errorf("query of search_history: %w", err)
	}
	answer, err := st.search.Call(ctx, tools.Call{Arguments: string(arguments), Session: st.session})
	if err != nil {
		return "", true, nil //nolint:nilerr // the model would read it and ask in other words
	}
	return answer, true, nil
}

// recorded is a tool that answers as a recording says.
type recorded struct {
	spec    llm.ToolSpec
	results map[string]string // by the call's id
}

var _ tools.Tool = recorded{}
var _ eval.Bobbin = (*stage)(nil)

// Spec tells the model what the tool is and takes.
func (t recorded) Spec() llm.ToolSpec { return t.spec }

// Idempotent reports true: nothing happens.
func (recorded) Idempotent() bool { return true }

// Call answers with the recorded result.
func (t recorded) Call(_ context.Context, c tools.Call) (string, error) {
	result, ok := t.results[c.ID]
	if !ok {
		return "", fmt.Errorf("the recording has no result of the call %s", c.ID)
	}
	return result, nil
}

// growing is the message log of one session that only grows: what was read is not
// read again, as a long replay would otherwise read all of it for every answer.
type growing struct {
	messageLog
	mu  sync.Mutex
	all []core.Message         // guarded by mu
	at  map[core.MessageID]int // guarded by mu; where a message stands in all
}

// GetMessagesAfter returns the messages after the given one.
func (g *growing) GetMessagesAfter(ctx context.Context, scope core.Scope, id core.SessionID, after core.MessageID) ([]core.Message, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var last core.MessageID
	if n := len(g.all); n > 0 {
		last = g.all[n-1].ID
	}
	more, err := g.messageLog.GetMessagesAfter(ctx, scope, id, last)
	if err != nil {
		return nil, err
	}
	if g.at == nil {
		g.at = map[core.MessageID]int{}
	}
	for _, m := range more {
		g.at[m.ID] = len(g.all)
		g.all = append(g.all, m)
	}
	from := 0
	if i, ok := g.at[after]; ok {
		from = i + 1
	}
	return slices.Clone(g.all[from:]), nil
}
