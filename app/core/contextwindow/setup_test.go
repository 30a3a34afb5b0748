package contextwindow_test

import (
	"cmp"
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
	runs    map[int]string // instructions of a run alone, by its number from 0 on
	native  string         // hash of the setup of a native summary at the beginning; empty = there is none
}

func newAgentTalk(t *testing.T) *agentTalk {
	t.Helper()
	return &agentTalk{
		t: t, setups: cw.Setups{}, unknown: map[string]bool{},
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
	a.add(core.RoleUser, "why?")
	return a.prompt(agent)
}

// add adds a message to the run of its turn.
func (a *agentTalk) add(role core.Role, content string, parts ...core.Part) {
	n := len(a.log) + 1
	a.log = append(a.log, core.Message{
		ID: core.MessageID(fmt.Sprint(n)), Seq: int64(n), RunID: core.RunID(fmt.Sprint((n + 1) / 2)), Role: role, Content: content, TokenCount: 5, Parts: parts,
	})
}

// prompt returns the prompt that the agent answers.
func (a *agentTalk) prompt(agent string) (cw.Decision, cw.Prompt) {
	a.t.Helper()
	hash := a.setup(agent)
	setup := a.setups[hash]
	known := cw.Setups{}
	for h, s := range a.setups {
		if !a.unknown[h] || h == hash {
			known[h] = s
		}
	}
	parts := cw.Parts{
		SystemPrompt: setup.SystemPrompt, ToolSpecs: setup.Specs, Tools: setup.ToolTokens, Model: a.model, Messages: map[core.MessageID]*core.Message{}, Setups: known,
		Instructions: a.runs[len(a.log)/2], Repeated: map[core.RunID]string{},
	}
	for i, text := range a.runs {
		parts.Repeated[core.RunID(fmt.Sprint(i+1))] = text
	}
	in := cw.Input{
		Policy: preset(a.t, "off"), Model: cw.Limits{Window: 8192}, Binds: a.model.Prefix.Binds(), State: a.state,
		System: cw.SystemTokens(parts, quarter{}), Tools: setup.ToolTokens, Setup: hash, Setups: known, ToolChanges: a.model.ToolChanges,
	}
	if a.native != "" {
		in.Summary = core.SummaryVersion{Version: 1, Tokens: 60, KeepsThoughts: true, Frozen: a.native}
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
			a.add(core.RoleAssistant, "so", core.Part{
				Type: core.PartReasoning, Signature: "s", Tokens: 10, Origin: a.model.ThoughtOrigin, Prefix: p.Prefix, Setup: d.Setup, Frozen: d.Frozen, Instructions: p.Sent.Instructions,
			})
		}
	}
	return d, p
}

// A native summary keeps the system prompt of its making before it, unless the messages need the room.
func TestNativeSummaryGivesUpItsRoom(t *testing.T) {
	t.Parallel()
	for size, want := range map[int]bool{1_000: true, 7_500: false} {
		a := newAgentTalk(t)
		a.native = a.setup(strings.Repeat("long", size) + " a")
		d, _ := a.ask("A a")
		if kept := d.Frozen == a.native; kept != want || strings.Contains(fmt.Sprint(d.Reasons), "the provider's own summary is not used") == want {
			t.Errorf("%d tokens: kept %v, reasons %q, want it kept: %v", size, kept, d.Reasons, want)
		}
	}
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
			text = strings.ReplaceAll(text, "[Instructions from here on, in place of earlier ones that were added in this way:]\n", "run: ")
			text = strings.ReplaceAll(text, "[From here on these tools no longer exist, do not call them: ", "[-")
			out += " (" + strings.ReplaceAll(text, "\n\n", " ") + ")"
		}
	}
	return out
}

// A changed system prompt is appended where the first answer has it, and stays there. Where messages can, they
// add tools, remove them and put others in their place: no thought is lost. Where they can only add tools, or
// change none, the removed ones stay in the list, and what messages cannot say drops the thoughts, as on a
// model that takes no system messages.
func TestSetupsAreFrozen(t *testing.T) {
	t.Parallel()
	const again = "([From here on all tools exist again.])"
	for name, c := range map[string]struct {
		agents             []string
		change             func(*agentTalk)
		fixed, adds, whole string // the prompt, for models whose tools stay, that add some, and that also remove some; empty = the one before
		lost               [2]int // thoughts where tools stay, and where they are only added
	}{
		"the same":             {agents: []string{"A a", "A a", "A a"}, fixed: "A a: ? ! ? ! ?"},
		"another prompt":       {agents: []string{"A a", "B a"}, fixed: "A a: ? ! ? (B)"},
		"as it was":            {agents: []string{"A a", "B a", "B a", "B a"}, fixed: "A a: ? ! ? (B) ! ? ! ?"},
		"two changes":          {agents: []string{"A a", "B a", "C a", "C a"}, fixed: "A a: ? ! ? (B) ! ? (C) ! ?"},
		"there and back":       {agents: []string{"A a", "B a", "A a", "A a"}, fixed: "A a: ? ! ? (B) ! ? (A) ! ?"},
		"no prompt":            {agents: []string{"A a", " a"}, fixed: "A a: ? ! ? ([The system prompt at the beginning no longer applies.])"},
		"another order":        {agents: []string{"A a,b", "A b,a"}, fixed: "A a,b: ? ! ?"},
		"not stored":           {agents: []string{"A a", "B a"}, change: func(a *agentTalk) { a.unknown[a.setup("A a")] = true }, fixed: "B a: ? ! ?", lost: [2]int{1, 1}},
		"no system messages":   {agents: []string{"A a", "B a"}, change: func(a *agentTalk) { a.model.SystemMessages = false }, fixed: "B a: ? ! ?", lost: [2]int{1, 1}},
		"a tool less":          {agents: []string{"A a,b", "A a", "A a"}, fixed: "A a,b: ? ! ? ([-b]) ! ?", whole: "A a,b: ? ! ? -b ! ?"},
		"the tool again":       {agents: []string{"A a,b", "A a", "A a,b"}, fixed: "A a,b: ? ! ? ([-b]) ! ? " + again, whole: "A a,b: ? ! ? -b ! ? +b"},
		"both":                 {agents: []string{"A a,b", "B b"}, fixed: "A a,b: ? ! ? (B [-a])", whole: "A a,b: ? ! ? -a (B)"},
		"a tool more":          {agents: []string{"A a", "A a,b", "A a,b"}, fixed: "A a,b: ? ! ? ! ?", adds: "A a: ? ! ? +b ! ?", lost: [2]int{1, 0}},
		"with another prompt":  {agents: []string{"A a", "B a,b"}, fixed: "B a,b: ? ! ?", adds: "A a: ? ! ? +b (B)", lost: [2]int{1, 0}},
		"in another run":       {agents: []string{"A a", "A a,b", "A a,b,c"}, fixed: "A a,b,c: ? ! ? ! ?", adds: "A a: ? ! ? +b ! ? +c", lost: [2]int{2, 0}},
		"and one less":         {agents: []string{"A a", "B a,b", "B a"}, fixed: "B a,b: ? ! ? ! ? ([-b])", adds: "A a: ? ! ? +b (B) ! ? ([-b])", whole: "A a: ? ! ? +b (B) ! ? -b", lost: [2]int{1, 0}},
		"another instead":      {agents: []string{"A a,b", "A a,c"}, fixed: "A a,c: ? ! ?", adds: "A a,b: ? ! ? +c ([-b])", whole: "A a,b: ? ! ? +c -b", lost: [2]int{1, 0}},
		"a changed tool":       {agents: []string{"A a,b", "A a'new,b"}, fixed: "A a,b: ? ! ?", whole: "A a,b: ? ! ? +anew", lost: [2]int{1, 1}},
		"one changed and back": {agents: []string{"A a", "A a'new", "A a"}, fixed: "A a: ? ! ? ! ?", whole: "A a: ? ! ? +anew ! ? +a", lost: [2]int{1, 1}},
		"a changed added tool": {agents: []string{"A a", "A a,b", "A a,b'new"}, fixed: "A a,b: ? ! ? ! ?", adds: "A a: ? ! ? ! ? +bnew", whole: "A a: ? ! ? +b ! ? +bnew", lost: [2]int{2, 1}},
		"the first tool":       {agents: []string{"A ", "A a"}, fixed: "A a: ? ! ?", lost: [2]int{1, 1}},
		"the last tool":        {agents: []string{"A a", "A "}, fixed: "A : ? ! ?", lost: [2]int{1, 1}},
	} {
		wants := []string{c.fixed, cmp.Or(c.adds, c.fixed), cmp.Or(c.whole, c.adds, c.fixed)}
		for i, changes := range []llm.ToolChanges{llm.ToolsFixed, llm.ToolsAdded, llm.ToolsChangeable} {
			t.Run(fmt.Sprint(name, "/", changes), func(t *testing.T) {
				t.Parallel()
				a := newAgentTalk(t)
				if a.model.ToolChanges = changes; c.change != nil {
					c.change(a)
				}
				lost := c.lost[min(i, 1)]
				if i == 2 && c.whole != "" {
					lost = 0
				}
				_, p := a.talk(c.agents...)
				if got := outline(p); got != wants[i] || p.Sent.Thoughts != (cw.ThoughtCount{Kept: len(c.agents) - 1 - lost, Changed: lost}) {
					t.Errorf("got %q with %+v, want %q with %d thoughts lost", got, p.Sent.Thoughts, wants[i], lost)
				}
			})
		}
	}
}
