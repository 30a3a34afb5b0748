package compaction

import (
	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
)

// Profile is an agent as one session uses it: its texts, its tools and its model.
type Profile struct {
	Agent        core.Agent
	Policy       contextwindow.Policy
	Loop         contextwindow.Loop // of one run; the zero value compacts nothing
	Model        llm.Model
	Fallbacks    []llm.Model // answer in this order when Model cannot be had
	SystemPrompt string      // the agent's, with the session's instructions
	ToolUsage    string      // instructions for the use of tools; empty without tools
	Tools        []llm.ToolSpec
}

// MaxIterations returns how many model calls a run may make (W13).
func (p Profile) MaxIterations() int {
	if p.Agent.MaxIterations > 0 {
		return p.Agent.MaxIterations
	}
	return core.DefaultMaxIterations
}

// Turn is what a plan depends on: the conversation and how it is to be sent.
type Turn struct {
	Session core.Session
	Profile Profile
	RunID   core.RunID       // for the books; empty between runs
	History []core.Message   // on the path after the cursor, before the run in progress; system rows included
	Run     []core.Message   // the run in progress, the user's message first; empty between runs
	Work    core.SummaryWork // beside the summary in use, when it was last looked at

	Notes map[core.SummaryID]core.Summary // on tool loops, as far as they were loaded; never changed in place

	// After the provider refused a prompt as too long:
	Cap    int // the next must be at most so large, in cl100k_base tokens, as the estimate has changed; 0 = no cap
	Window int // the real window, if the provider told it; 0 = as the model table says
}

// messages returns all messages of the turn by id.
func (t Turn) messages(pinned []core.Message) map[core.MessageID]core.Message {
	byID := make(map[core.MessageID]core.Message, len(t.History)+len(t.Run)+len(pinned))
	for _, list := range [][]core.Message{pinned, t.History, t.Run} {
		for _, m := range list {
			byID[m.ID] = m
		}
	}
	return byID
}

// items returns the messages as a plan sees them, without system rows (W14).
func items(messages []core.Message) []contextwindow.Item {
	out := make([]contextwindow.Item, 0, len(messages))
	for _, m := range messages {
		if m.Role != core.RoleSystem {
			out = append(out, contextwindow.ItemOf(m))
		}
	}
	return out
}
