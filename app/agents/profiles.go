package agents

import (
	"cmp"
	"context"
	_ "embed" // the prompts
	"fmt"
	"regexp"
	"strings"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
)

//go:embed prompts/tool_usage.md
var toolUsage string

// Profiles says how the agents of sessions are set up. Safe for concurrent use.
type Profiles struct {
	agents core.AgentCatalog
	models llm.Models
	tools  *tools.Set
	global contextwindow.Global
}

// NewProfiles returns Profiles. Global are the context settings of all agents.
func NewProfiles(agents core.AgentCatalog, models llm.Models, set *tools.Set, global contextwindow.Global) *Profiles {
	return &Profiles{agents: agents, models: models, tools: set, global: global}
}

// Profile resolves the session's agent with its texts, tools, policy and model:
// the model asked for, else the session's, else the agent's, else the default.
// Its tools are those that are loaded. Errors: ErrNotFound or ErrInvalid when the agent or the
// model is not configured.
func (p *Profiles) Profile(_ context.Context, session core.Session, model string) (compaction.Profile, error) {
	agent, err := p.agents.Get(session.Agent)
	if err != nil {
		return compaction.Profile{}, err
	}
	name := cmp.Or(model, session.Model, agent.Model)
	m, err := p.models.Get(name)
	if err != nil {
		return compaction.Profile{}, llm.HideCause(name, err)
	}
	agent, specs := p.tools.Resolve(agent)
	policy, err := contextwindow.Resolve(p.global, agent.Context)
	loop, err2 := contextwindow.ResolveLoop(policy.Name, agent.Compaction)
	if err = cmp.Or(err, err2); err != nil {
		return compaction.Profile{}, fmt.Errorf("agent %s: %w", agent.Name, err)
	}
	// The session's time zone and instructions are the user's wishes, fenced and below what the agent is told.
	// Nothing in the prompt changes from turn to turn, so that its bytes can be cached.
	prompt := strings.TrimSpace(agent.SystemPrompt)
	if session.Timezone != "" {
		prompt += "\n\nThe user's time zone is " + session.Timezone + "."
	}
	if wishes := strings.TrimSpace(session.Instructions); wishes != "" {
		prompt += "\n\nThe user's own wishes for this conversation; follow them where they do not contradict what is said above:\n" +
			"<user_instructions>\n" + wishFence.ReplaceAllString(wishes, "[$1") + "\n</user_instructions>"
	}
	profile := compaction.Profile{Agent: agent, Policy: policy, Loop: loop, Tools: specs, Model: m, SystemPrompt: strings.TrimSpace(prompt)}
	if len(specs) > 0 {
		profile.ToolUsage = strings.TrimSpace(toolUsage)
	}
	for _, name := range agent.FallbackModels { // wire.AgentWarnings reports those that cannot be used
		if fallback, err := p.models.Get(name); err == nil && fallback.Info().Name != m.Info().Name {
			profile.Fallbacks = append(profile.Fallbacks, fallback)
		}
	}
	if session.Temporary {
		profile.Loop = contextwindow.Loop{}
		profile.Policy, err = contextwindow.ResolveTemporary(p.global, agent.Context)
	}
	return profile, err
}

// RunProfile is Profile for a run: it waits, for at most 10 s, for tools that were not loaded yet.
func (p *Profiles) RunProfile(ctx context.Context, session core.Session, model string) (compaction.Profile, error) {
	if agent, err := p.agents.Get(session.Agent); err == nil {
		p.tools.Await(ctx, agent)
	}
	return p.Profile(ctx, session, model)
}

// Preset returns the policy of that name with the settings that all agents share, and
// nothing of an agent's own. ErrInvalid for names that are no preset.
func (p *Profiles) Preset(name string) (contextwindow.Policy, error) {
	return contextwindow.Resolve(p.global, core.ContextSettings{Policy: name})
}

// wishFence matches what begins or ends the fence, however it is written.
var wishFence = regexp.MustCompile(`(?i)<(\s*/?\s*user_instructions\b)`)

// Directory shows what agents there are, with the tools that they have at the moment and the graph that they run
// through. Engine is needed for graphs only.
type Directory struct {
	core.AgentCatalog

	Tools  *tools.Set
	Engine *Engine
}

// Get returns the agent of the name. Errors are those of the catalog.
func (d *Directory) Get(name string) (core.Agent, error) {
	agent, err := d.AgentCatalog.Get(name)
	if err == nil {
		agent, _ = d.Tools.Resolve(agent)
	}
	return agent, err
}

// List returns all agents.
func (d *Directory) List() []core.Agent {
	list := d.AgentCatalog.List()
	for i, agent := range list {
		list[i], _ = d.Tools.Resolve(agent)
	}
	return list
}

// Graph returns the agent's graph. ErrNotFound for an agent that does not exist.
func (d *Directory) Graph(name string) (core.GraphView, error) {
	_, err := d.AgentCatalog.Get(name)
	return d.Engine.graph.Describe(), err
}

// Mermaid returns the agent's graph as a Mermaid drawing.
func (d *Directory) Mermaid(name string) (string, error) {
	_, err := d.AgentCatalog.Get(name)
	return d.Engine.graph.Mermaid(), err
}
