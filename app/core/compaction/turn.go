package compaction

import (
	"cmp"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
)

// Profile is an agent as one session uses it: texts, tools and model.
type Profile struct {
	Agent        core.Agent
	Policy       contextwindow.Policy
	Loop         contextwindow.Loop // of one run; the zero value compacts nothing
	Model        llm.Model
	Fallbacks    []llm.Model // used in this order when Model is unavailable
	SystemPrompt string      // of the agent, with the session's instructions
	ToolUsage    string      // instructions for the use of tools; empty without tools
	Tools        []llm.ToolSpec

	// Of one run alone, see WithOptions.
	Instructions      string
	ParallelToolCalls *bool
}

// WithOptions returns the profile as a run with the options uses it; nil = none.
func (p Profile) WithOptions(o *core.RunOptions) Profile {
	if o == nil {
		return p
	}
	p.Agent.ModelParameters = p.Agent.ModelParameters.With(o.ModelParameters)
	p.Instructions, p.ParallelToolCalls = o.Instructions, o.ParallelToolCalls
	p.Tools = slices.DeleteFunc(slices.Clone(p.Tools), func(t llm.ToolSpec) bool { // the agent may have got it since
		return slices.ContainsFunc(o.Tools, func(own core.ClientTool) bool { return own.Name == t.Name })
	})
	p.Tools = p.Tools[:min(len(p.Tools), max(core.MaxTools-len(o.Tools), 0))]
	for _, t := range o.Tools {
		p.Tools = append(p.Tools, llm.ToolSpec(t))
	}
	return p
}

// MaxIterations returns how many model calls a run may make.
func (p Profile) MaxIterations() int {
	return cmp.Or(max(p.Agent.MaxIterations, 0), core.DefaultMaxIterations)
}

// Loaded is what the prompts of a run keep from one to the next. Its maps are never changed in place.
type Loaded struct {
	Waited   bool                   // a prompt of the run has waited for a summary: later prompts do not
	Recalled *Recalled              // what the log has for the run's message; nil = not searched
	Shown    map[int64]bool         // the messages that the last prompt shows word for word, by seq
	room     contextwindow.Room     // behind the last prompt
	Standing *Standing              // what users set for the whole conversation; nil = not loaded
	Rendered contextwindow.Rendered // messages of the last prompt whose texts the turn does not have

	// Texts beside the messages, as far as they were loaded.

	Quotes          contextwindow.Quotes            // that earlier prompts quoted and this one quotes again
	RunInstructions map[core.RunID]string           // of earlier runs, that prompts repeat
	Setups          contextwindow.Setups            // the current one and those of earlier thoughts; nil = the current one is the only one
	Notes           map[core.SummaryID]core.Summary // on tool loops
}

// Turn is what a plan depends on: the conversation, and how it is sent.
type Turn struct {
	Session core.Session
	Profile Profile
	RunID   core.RunID       // for usage records; empty between runs
	Pinned  []core.Message   // on the path, pinned, and covered by the summary
	History []core.Message   // on the path after the cursor, before the run in progress; system rows included
	Run     []core.Message   // the run in progress, the user's message first; empty between runs
	Work    core.SummaryWork // on the session's summaries, as last loaded

	Loaded

	// RefusedNative says that the provider did not take back a native summary in this model call: its
	// next tries have none, not even a new one.
	RefusedNative bool

	// Set after the provider refused a prompt as too long:
	Cap    int // max size of the next prompt in cl100k_base tokens, since the estimate has changed; 0 = no cap
	Window int // the real window, if the provider reported it; 0 = as the model table says
	// Trial says that Window is a guess: the oldest messages are left out until the prompt
	// fits. No summary is made and nothing is stored.
	Trial bool
}

// newEvent returns an event of the turn's session and run.
func (t Turn) newEvent(kind core.EventType, data core.ContextData) core.Event {
	return core.NewEvent(t.Session.ID, t.RunID, kind, data)
}

// nameSpeakers returns the messages as a summarizer gets them: of several speakers with their names.
func (t Turn) nameSpeakers(messages []core.Message) []core.Message {
	if t.Session.Speakers != core.ManySpeakers {
		return messages
	}
	messages = slices.Clone(messages)
	for i := range messages {
		messages[i].Named = messages[i].Role == core.RoleUser
	}
	return messages
}

// planItems returns the messages as a plan for the model sees them, without system rows.
func (k *Compactor) planItems(t Turn, messages []core.Message, model llm.Info) []contextwindow.Item {
	itemOf := contextwindow.ItemOf
	if t.Session.Speakers == core.ManySpeakers {
		itemOf = contextwindow.NamedItemOf
	}
	out := make([]contextwindow.Item, 0, len(messages))
	for _, m := range messages {
		if m.Role != core.RoleSystem {
			out = append(out, itemOf(m, model, k.Counter))
		}
	}
	return out
}
