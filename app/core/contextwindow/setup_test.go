package contextwindow_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	cw "bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/tests/must"
)

// change lets the system prompt and the tools change now and then. It follows from the messages, so
// that stored failures stay as they are.
func (s *sim) change() {
	if s.setups == nil {
		return
	}
	last := s.log[len(s.log)-1]
	n := (int(last.Seq)*5 + len(last.Content)) % 12
	if n >= 6 && s.setup != "" {
		return
	}
	s.system = words(fmt.Sprintf("system %d", n%4), 10+n*20)
	specs := []llm.ToolSpec{{Name: "read_file"}, {Name: "write_file"}, {Name: "search"}}[:1+n%3]
	if last.Seq%4 == 0 {
		specs[0].Description = "Reads, too."
	}
	raw, _ := json.Marshal(specs)
	setup, _ := core.NewPromptSetup(s.system, "", raw)
	s.setup = setup.Hash
	s.setups[s.setup], _ = cw.NewSetup(setup, ruler{})
}

// ruler counts as quarter does, and each tool as 50.
type ruler struct{ quarter }

func (ruler) Message(m core.Message) int        { return quarter{}.Text(m.Content) }
func (ruler) Tools(list []llm.ToolSpec) (n int) { return 50 * len(list) }

// tools returns the tokens of the tools.
func (s *sim) tools() int {
	if s.setup == "" {
		return 50
	}
	return s.setups[s.setup].ToolTokens
}

// agentTalk is a conversation whose agent changes. Each answer has a thought, bound to its prompt.
type agentTalk struct {
	t       *testing.T
	model   llm.Info
	log     []core.Message
	setups  cw.Setups
	unknown map[string]bool // setups that are not stored
	state   cw.PromptState
	window  int
	native  string // agent of the native summary at the beginning; empty = there is none
}

func newAgentTalk(t *testing.T) *agentTalk {
	t.Helper()
	return &agentTalk{
		t: t, setups: cw.Setups{}, unknown: map[string]bool{}, window: 8192,
		model: llm.Info{Name: "m", Provider: "anthropic", Prefix: llm.PrefixRefuses, ThoughtOrigin: "anthropic/m", SystemMessages: true},
	}
}

// setup returns the hash of an agent, such as "Help. a,b'new": its system prompt and its tools, each with
// its description.
func (a *agentTalk) setup(agent string) string {
	a.t.Helper()
	system, tools, _ := strings.Cut(agent, " ")
	var specs []llm.ToolSpec
	for _, tool := range strings.Split(tools, ",") {
		if name, changed, _ := strings.Cut(tool, "'"); name != "" {
			specs = append(specs, llm.ToolSpec{Name: name, Description: changed})
		}
	}
	raw, err := json.Marshal(specs)
	must.Do(a.t, err)
	s, _ := core.NewPromptSetup(system, "", raw)
	if a.setups[s.Hash], err = cw.NewSetup(s, ruler{}); err != nil {
		a.t.Fatal(err)
	}
	return s.Hash
}

// ask adds a question, and returns the prompt that the agent answers.
func (a *agentTalk) ask(agent string) (cw.Decision, cw.Prompt) {
	a.t.Helper()
	hash := a.setup(agent)
	setup := a.setups[hash]
	if a.native != "" {
		a.setup(a.native)
	}
	known := cw.Setups{}
	for h, s := range a.setups {
		if !a.unknown[h] || h == hash {
			known[h] = s
		}
	}
	a.log = append(a.log, core.Message{ID: core.MessageID(fmt.Sprint(len(a.log) + 1)), Seq: int64(len(a.log) + 1), Role: core.RoleUser, Content: "why?", TokenCount: 5})
	parts := cw.Parts{SystemPrompt: setup.SystemPrompt, ToolSpecs: setup.Specs, Tools: setup.ToolTokens, Model: a.model, Messages: map[core.MessageID]*core.Message{}, Setups: known}
	in := cw.Input{
		Policy: preset(a.t, "off"), Model: cw.Limits{Window: a.window}, Binds: a.model.Prefix.Binds(), State: a.state,
		System: cw.SystemTokens(parts, quarter{}), Tools: setup.ToolTokens, Setup: hash, Setups: known, ToolChanges: a.model.ToolChanges,
	}
	if a.native != "" {
		in.Summary = core.SummaryVersion{Version: 1, Tokens: 60, KeepsThoughts: true, Frozen: a.setup(a.native)}
		parts.Summary, parts.Native = "words", &core.NativeSummary{Part: core.Part{Type: core.PartCompaction, Text: "own"}, Tokens: 60}
	}
	for i, m := range a.log {
		parts.Messages[m.ID] = &m
		if i < len(a.log)-1 {
			in.History = append(in.History, cw.ItemOf(m, a.model, quarter{}))
		} else {
			in.Run = append(in.Run, cw.ItemOf(m, a.model, quarter{}))
		}
	}
	d, state := cw.Plan(in)
	a.state = state
	p := cw.Assemble(parts, d, quarter{})
	if used := p.Sent.Used(d); used > d.Total {
		a.t.Errorf("%s: sent are %d tokens, planned %d", agent, used, d.Total)
	}
	return d, p
}

// talk asks each of the agents and answers, and returns the last prompt.
func (a *agentTalk) talk(agents ...string) (d cw.Decision, p cw.Prompt) {
	a.t.Helper()
	for i, agent := range agents {
		if d, p = a.ask(agent); i < len(agents)-1 {
			a.log = append(a.log, core.Message{ID: core.MessageID(fmt.Sprint(len(a.log) + 1)), Seq: int64(len(a.log) + 1), Role: core.RoleAssistant, Content: "so", TokenCount: 5, Parts: []core.Part{{
				Type: core.PartReasoning, Signature: "s", Tokens: 10, Origin: a.model.ThoughtOrigin, Prefix: p.Prefix, Setup: d.Setup, Frozen: d.Frozen,
			}}})
		}
	}
	return d, p
}

// outline returns the system prompt with the tools, and the messages in order.
func outline(p cw.Prompt) string {
	var tools []string
	for _, s := range p.Tools {
		tools = append(tools, s.Name)
	}
	out := strings.Join(p.System, " ") + " " + strings.Join(tools, ",") + ":"
	for _, m := range p.Messages {
		switch m.Role {
		case core.RoleUser:
			out += " ?"
		case core.RoleAssistant:
			out += " !"
		default:
			for _, tool := range m.AddedTools {
				out += " +" + tool.Name + tool.Description
			}
			for _, name := range m.RemovedTools {
				out += " -" + name
			}
			if m.Content == "" {
				continue
			}
			text := strings.ReplaceAll(m.Content, "[The system prompt from here on, in place of the one at the beginning:]\n", "")
			text = strings.ReplaceAll(text, "[From here on these tools no longer exist, do not call them: ", "[-")
			out += " (" + strings.ReplaceAll(text, "\n\n", " ") + ")"
		}
	}
	return out
}

// A changed system prompt is appended where the first answer has it, and stays there; a removed tool
// stays in the list. An added tool, or a model that takes no system messages, drops the thoughts.
func TestSetupsAreFrozen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		agents  []string
		change  func(*agentTalk)
		want    string
		kept    int
		changed int
	}{
		"the same":           {agents: []string{"A a", "A a", "A a"}, want: "A a: ? ! ? ! ?", kept: 2},
		"another prompt":     {agents: []string{"A a", "B a"}, want: "A a: ? ! ? (B)", kept: 1},
		"as it was":          {agents: []string{"A a", "B a", "B a", "B a"}, want: "A a: ? ! ? (B) ! ? ! ?", kept: 3},
		"two changes":        {agents: []string{"A a", "B a", "C a", "C a"}, want: "A a: ? ! ? (B) ! ? (C) ! ?", kept: 3},
		"there and back":     {agents: []string{"A a", "B a", "A a", "A a"}, want: "A a: ? ! ? (B) ! ? (A) ! ?", kept: 3},
		"no prompt":          {agents: []string{"A a", " a"}, want: "A a: ? ! ? ([The system prompt at the beginning no longer applies.])", kept: 1},
		"a tool less":        {agents: []string{"A a,b", "A a", "A a"}, want: "A a,b: ? ! ? ([-b]) ! ?", kept: 2},
		"the tool again":     {agents: []string{"A a,b", "A a", "A a,b"}, want: "A a,b: ? ! ? ([-b]) ! ? ([From here on all tools exist again.])", kept: 2},
		"both":               {agents: []string{"A a,b", "B b"}, want: "A a,b: ? ! ? (B [-a])", kept: 1},
		"no tool left":       {agents: []string{"A a", "A"}, want: "A : ? ! ?", changed: 1},
		"a tool more":        {agents: []string{"A a", "A a,b"}, want: "A a,b: ? ! ?", changed: 1},
		"and one less":       {agents: []string{"A a", "B a,b", "B a"}, want: "B a,b: ? ! ? ! ? ([-b])", kept: 1, changed: 1},
		"another order":      {agents: []string{"A a,b", "A b,a"}, want: "A a,b: ? ! ?", kept: 1},
		"not stored":         {agents: []string{"A a", "B a"}, change: func(a *agentTalk) { a.unknown[a.setup("A a")] = true }, want: "B a: ? ! ?", changed: 1},
		"no system messages": {agents: []string{"A a", "B a"}, change: func(a *agentTalk) { a.model.SystemMessages = false }, want: "B a: ? ! ?", changed: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAgentTalk(t)
			if c.change != nil {
				c.change(a)
			}
			_, p := a.talk(c.agents...)
			if got := outline(p); got != c.want || p.Sent.Thoughts != (cw.ThoughtCount{Kept: c.kept, Changed: c.changed}) {
				t.Errorf("got %q with %+v, want %q with %d thoughts", got, p.Sent.Thoughts, c.want, c.kept)
			}
		})
	}
}

// Where messages can, they add tools, remove them and put others in their place: no thought is lost. Where they
// can only add tools, the removed ones stay in the list, and a changed one drops the thoughts.
func TestToolsChangeInMessages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		agents      []string
		adds, whole string // the prompt, for models that add tools, and for those that also remove them; empty = the same
		changed     int    // thoughts that are lost where tools are only added
	}{
		"a tool more":          {agents: []string{"A a", "A a,b", "A a,b"}, adds: "A a: ? ! ? +b ! ?"},
		"with another prompt":  {agents: []string{"A a", "B a,b"}, adds: "A a: ? ! ? +b (B)"},
		"in another run":       {agents: []string{"A a", "A a,b", "A a,b,c"}, adds: "A a: ? ! ? +b ! ? +c"},
		"and none again":       {agents: []string{"A a", "A a,b", "A a"}, adds: "A a: ? ! ? +b ! ? ([-b])", whole: "A a: ? ! ? +b ! ? -b"},
		"and it again":         {agents: []string{"A a", "A a,b", "A a", "A a,b"}, adds: "A a: ? ! ? +b ! ? ([-b]) ! ? ([From here on all tools exist again.])", whole: "A a: ? ! ? +b ! ? -b ! ? +b"},
		"another instead":      {agents: []string{"A a,b", "A a,c"}, adds: "A a,b: ? ! ? +c ([-b])", whole: "A a,b: ? ! ? +c -b"},
		"a tool less":          {agents: []string{"A a,b", "A a", "A a"}, adds: "A a,b: ? ! ? ([-b]) ! ?", whole: "A a,b: ? ! ? -b ! ?"},
		"still one less":       {agents: []string{"A a,b", "A a", "A a,c"}, adds: "A a,b: ? ! ? ([-b]) ! ? +c", whole: "A a,b: ? ! ? -b ! ? +c"},
		"a changed tool":       {agents: []string{"A a,b", "A a'new,b"}, adds: "A a,b: ? ! ?", whole: "A a,b: ? ! ? +anew", changed: 1},
		"one changed and back": {agents: []string{"A a", "A a'new", "A a"}, adds: "A a: ? ! ? ! ?", whole: "A a: ? ! ? +anew ! ? +a", changed: 1},
		"a changed added tool": {agents: []string{"A a", "A a,b", "A a,b'new"}, adds: "A a: ? ! ? ! ? +bnew", whole: "A a: ? ! ? +b ! ? +bnew", changed: 1},
		"the first tool":       {agents: []string{"A ", "A a"}, adds: "A a: ? ! ?", changed: 1},
		"the last tool":        {agents: []string{"A a", "A "}, adds: "A : ? ! ?", changed: 1},
	} {
		for _, changes := range []llm.ToolChanges{llm.ToolsAdded, llm.ToolsChangeable} {
			t.Run(fmt.Sprint(name, "/", changes), func(t *testing.T) {
				t.Parallel()
				a := newAgentTalk(t)
				a.model.ToolChanges = changes
				want, lost := c.adds, c.changed
				if changes == llm.ToolsChangeable && c.whole != "" {
					want, lost = c.whole, 0
				}
				_, p := a.talk(c.agents...)
				if got := outline(p); got != want || p.Sent.Thoughts.Changed != lost {
					t.Errorf("got %q with %+v, want %q with %d thoughts lost", got, p.Sent.Thoughts, want, lost)
				}
			})
		}
	}
}
