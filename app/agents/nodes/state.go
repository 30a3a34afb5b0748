package nodes

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
)

// AgentState is the state of one run on its way through the graph. A node gets a
// copy and returns the new one; slices are never changed in place. What is in the
// message log can be rebuilt from it: every resume begins at retrieve_context.
type AgentState struct {
	compaction.Turn // as the last plan left it; NextTurn returns that of the next model call

	Run         core.Run
	UserMessage core.Message   // the message that the run answers; Seq is 0 until the log has it
	RunMessages []core.Message // what the run has added to the log after the user message

	Planned  *Planned // the next prompt, if nothing changed since it was planned
	Measures Measures // what made the run's prompts fit

	leavesOut []string           // of the run's prompts: what the agent's model did not take
	refused   []core.RefusedTurn // see attempts
}

// Planned is a turn that was made to fit, and what its prompt holds.
type Planned struct {
	Turn     compaction.Turn
	Decision contextwindow.Decision
}

// maxRunTexts is how many bytes of texts of its own messages a run keeps in memory: the
// newest. A loop of tools may write a hundred times as much.
const maxRunTexts = 1 << 20

// WithRunMessages returns the state with what the run has added to the log.
func (s AgentState) WithRunMessages(added []core.Message) AgentState {
	s.Planned = nil
	size, all := 0, slices.Concat(s.RunMessages, added)
	for i := len(all) - 1; i >= 0; i-- { // the newest keep their texts, the last one always
		if size += all[i].TextBytes(); size > maxRunTexts && i < len(all)-1 {
			all[i] = all[i].WithoutTexts()
		}
	}
	s.RunMessages = all
	return s
}

// OpenCalls returns the tool calls of the newest assistant message without a result, in the model's order.
func (s AgentState) OpenCalls() []core.ToolCall {
	answered := map[string]bool{}
	for i := len(s.RunMessages) - 1; i >= 0; i-- {
		m := s.RunMessages[i]
		if m.Role == core.RoleTool {
			answered[m.ToolCallID] = true
			continue
		}
		var open []core.ToolCall
		for _, c := range m.ToolCalls {
			if !answered[c.ID] {
				open = append(open, c)
			}
		}
		return open
	}
	return nil
}

// Answer returns the assistant message that ends the run, and false while there is none.
func (s AgentState) Answer() (core.Message, bool) {
	if n := len(s.RunMessages); n > 0 {
		last := s.RunMessages[n-1]
		return last, last.Role == core.RoleAssistant && len(last.ToolCalls) == 0
	}
	return core.Message{}, false
}

// Iteration returns how many model calls the run has made since its client gave it results: a call that nobody
// answers in time has a failed one.
func (s AgentState) Iteration() int {
	return countAnswers(s.sinceCall(func(c core.ToolCall) bool {
		return s.isSince(c) || s.Run.HasClientTool(c.Name) && slices.ContainsFunc(s.RunMessages, func(m core.Message) bool { return m.ToolCallID == c.ID && m.Status == core.MessageComplete })
	}))
}

// countAnswers returns how many of the messages are answers of the model.
func countAnswers(messages []core.Message) (n int) {
	for _, m := range messages {
		if m.Role == core.RoleAssistant {
			n++
		}
	}
	return n
}

// sinceCall returns the messages of the run after the last one that has such a call: all if none has.
func (s AgentState) sinceCall(is func(core.ToolCall) bool) []core.Message {
	for i, m := range slices.Backward(s.RunMessages) {
		if slices.ContainsFunc(m.ToolCalls, is) {
			return s.RunMessages[i+1:]
		}
	}
	return s.RunMessages
}

// isSince reports whether the run's options came with the result of the call.
func (s AgentState) isSince(c core.ToolCall) bool {
	return s.Run.Options != nil && s.Run.Options.Since == c.ID
}

// NextTurn returns what the context plan of the next model call depends on.
func (s AgentState) NextTurn() compaction.Turn {
	t := s.Turn
	t.RunID, t.Run = s.Run.ID, append([]core.Message{s.UserMessage}, s.RunMessages...)
	return t
}

// Deps are what the nodes and their graph are made of. All but Tails, ApprovalTime and Budget are
// required; agents.NewEngine needs no Observer either.
type Deps struct {
	LoadProfile func(ctx context.Context, session core.Session, model string) (compaction.Profile, error) // agents.Profiles.RunProfile
	Compactor   *compaction.Compactor
	Sessions    core.SessionStore
	Messages    core.MessageStore
	Tails       *TailCache // nil = messages are loaded for each run
	Runs        core.RunStore
	Journal     Recorder
	Titler      Titler
	Tools       *tools.Set
	Counter     llm.TokenCounter
	Calibrator  *tokens.Calibrator
	ToolLimits  ToolLimits
	// ApprovalTime is how long a run waits for a person; 0 = until there is an answer.
	ApprovalTime time.Duration
	Budget       llm.Budget // nil = no limits
	Observer     core.Observer
	Logger       *slog.Logger
}

// Recorder stores what a node produced, and notifies the watchers (runs.Recorder).
type Recorder interface {
	// Append commits one step of a run. ErrStale: another process owns the run.
	Append(ctx context.Context, w core.RunWrite) (core.Written, error)
	// Write is Append for a caller that publishes the events itself.
	Write(ctx context.Context, w core.RunWrite) (core.Written, error)
	Publish(ctx context.Context, events []core.Event)
	// Delta publishes something that is not stored.
	Delta(ctx context.Context, e core.Event)
}

// Titler gives untitled sessions a title beside the work on a run.
type Titler interface {
	// Begin is called when a run starts. Session is as the run found it.
	Begin(session core.Session, run core.Run)
}
