package contextwindow

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
)

// Another system prompt or other tools would change the prompt before all thoughts. On a model
// that binds thoughts to their prompt (llm.Info.AppendsInstructions) a prompt therefore keeps the
// ones with which its thoughts were produced: it is frozen. A new system prompt is a system message
// directly before the first answer that was produced with it, and later prompts repeat the message
// there, as long as a thought behind it is sent. The same message changes the tools (offer); tools
// that no message can add end the freeze. So does whatever drops the thoughts, unless the prompt has a
// native summary: that is valid behind the setup with which it was made, so the prompt begins with
// that one, thoughts or not.

// Setup is a system prompt with its tools, and their sizes in cl100k_base tokens.
type Setup struct {
	core.PromptSetup
	Specs      []llm.ToolSpec
	System     int               // of the system blocks
	ToolTokens int               // of the tool definitions
	keys       map[string]string // the definitions by the names of the tools
	count      llm.TokenCounter
}

// Setups are setups by their hashes.
type Setups map[string]Setup

// NewSetup returns the setup with its sizes.
func NewSetup(s core.PromptSetup, count llm.TokenCounter) (Setup, error) {
	out := Setup{PromptSetup: s, keys: map[string]string{}, count: count}
	var definitions []json.RawMessage
	if err := errors.Join(json.Unmarshal(s.Tools, &out.Specs), json.Unmarshal(s.Tools, &definitions)); err != nil {
		return Setup{}, err
	}
	for i, spec := range out.Specs {
		out.keys[spec.Name] = string(definitions[i])
	}
	out.System = SystemTokens(Parts{SystemPrompt: s.SystemPrompt, ToolUsage: s.ToolUsage}, count)
	out.ToolTokens = count.Tools(out.Specs)
	return out, nil
}

// messageTokens returns the cl100k_base tokens of the message that goes on to the setup.
func (s Setup) messageTokens(m llm.Message) int {
	n := tokens.Prompted(s.count.Text, m) + s.count.Tools(m.AddedTools) + blockOverhead*len(m.AddedTools)
	for _, name := range m.RemovedTools {
		n += s.count.Text(name) + blockOverhead
	}
	return n
}

// text returns the system prompt as a message has it.
func (s Setup) text() string {
	return strings.TrimSpace(s.SystemPrompt + "\n\n" + s.ToolUsage)
}

// The texts of the message.
const (
	setupTitle     = "[The system prompt from here on, in place of the one at the beginning:]\n"
	setupWithdrawn = "[The system prompt at the beginning no longer applies.]"
	toolsRemoved   = "[From here on these tools no longer exist, do not call them: "
	toolsRestored  = "[From here on all tools exist again.]"
)

// first returns the setup at the beginning of the prompt of the message's thoughts; empty = not known.
func (it Item) first() string { return cmp.Or(it.Frozen, it.Setup) }

// sendsThoughts reports whether the message is sent with thoughts.
func (s Slot) sendsThoughts() bool {
	return s.Thoughts > 0 && !s.Bare && s.Place == core.PlaceVerbatim
}

// firstSetup returns the setup with which a prompt of the slots begins, so that its native summary
// or the newest thoughts stay valid; empty = not known, or none.
func (p *planner) firstSetup(slots []Slot) string {
	if n := p.in.Summary; n.Frozen != "" && !(p.state.SummaryCut > 0 && p.state.SummaryCut < p.in.Summary.Tokens) {
		return n.Frozen
	}
	for _, s := range slices.Backward(slots) {
		if s.sendsThoughts() {
			return s.first()
		}
	}
	return ""
}

// CanChange reports whether a prompt that begins with one setup can go on with another.
func (s Setups) CanChange(from, to string, changes llm.ToolChanges) bool {
	first, known := s[from]
	last, ok := s[to]
	if !known || !ok {
		return false
	}
	_, ok = newOffer(first, changes).next(last)
	return ok
}

// ChangesSetup reports whether a change of the setup stands among the messages of the prompt.
func (d Decision) ChangesSetup() bool {
	changes := func(s Slot) bool { return s.NewSetup != "" }
	return slices.ContainsFunc(d.History, changes) || slices.ContainsFunc(d.Run, changes)
}

// placedSetup says how a prompt differs from one that begins with the current setup, in cl100k_base tokens.
type placedSetup struct {
	frozen        string // with which it begins; empty = with the current one
	system, tools int    // how much larger these are at its beginning
	appended      int    // the current one at its end; 0 = it is not appended
}

// placeSetups finds the setup with which the prompt begins, and adds the later ones before their thoughts.
func (p *planner) placeSetups(slots []Slot) {
	p.setup = placedSetup{}
	hash := p.firstSetup(slots)
	first, known := p.in.Setups[hash]
	current, ok := p.in.Setups[p.in.Setup]
	if !known || !ok {
		return
	}
	offer, last, sizes := newOffer(first, p.in.ToolChanges), hash, map[int]int{}
	for i, s := range slots {
		next, known := p.in.Setups[s.Setup]
		if s.Setup == last || s.first() != hash || !s.sendsThoughts() || !known || !offer.leadsTo(next, current) {
			continue
		}
		change, _ := offer.next(next)
		last, sizes[i] = s.Setup, p.scale.toModel(next.messageTokens(change))
	}
	if last != p.in.Setup {
		change, ok := offer.next(current)
		if !ok {
			return
		}
		p.setup.appended = current.messageTokens(change)
	}
	for i, size := range sizes {
		slots[i].NewSetup = slots[i].Setup
		slots[i].Size += size
	}
	if hash != p.in.Setup {
		p.setup.frozen, p.setup.system, p.setup.tools = hash, first.System-current.System, first.ToolTokens-current.ToolTokens
	}
}

// dropSetups lets the prompt begin with the current setup, without the thoughts that are bound to
// another; behind a native summary, it removes the changes before thoughts. It reports false if there
// are none.
func (p *planner) dropSetups() bool {
	i := slices.IndexFunc(p.slots, func(s Slot) bool { return s.NewSetup != "" })
	if p.setup != (placedSetup{}) && p.firstSetup(nil) == "" {
		i = slices.IndexFunc(p.slots, Slot.sendsThoughts)
	}
	if i < 0 {
		return false
	}
	return p.giveUpThoughts(p.slots[i].Seq, "an earlier system prompt")
}

// giveUpNative has the words of the summary replace a native one that needs an earlier setup before it.
func (p *planner) giveUpNative() {
	if p.setup.frozen == "" || p.firstSetup(nil) == "" {
		return
	}
	p.addRung(0)
	p.addReason("the provider's own summary is not used: the conversation needs the room of an earlier system prompt")
	p.state.SummaryCut = max(p.in.Summary.Tokens-1, 1)
	p.placeMessages()
}

// withFrozen returns the parts with the setup with which the prompt of the decision begins.
func (p Parts) withFrozen(d Decision) Parts {
	first, known := p.Setups[d.Frozen]
	if !known {
		return p
	}
	p.SystemPrompt, p.ToolUsage = first.SystemPrompt, first.ToolUsage
	if !bytes.Equal(first.PromptSetup.Tools, p.Setups[d.Setup].PromptSetup.Tools) {
		p.ToolSpecs, p.Tools = first.Specs, first.ToolTokens
	}
	return p
}

// addSetup appends the message that goes on to a setup, if there is anything to say.
func (p *assembly) addSetup(section Section, hash string) {
	to := p.parts.Setups[hash]
	m, ok := p.offer.next(to)
	if ok && (m.Content != "" || len(m.AddedTools)+len(m.RemovedTools) > 0) {
		p.Messages = append(p.Messages, PromptMessage{Message: m, Place: core.PlaceSystem, Section: section, Tokens: to.messageTokens(m)})
	}
}

// A prompt begins with the tools of its thoughts and goes on with others. What is new about them is
// said as the model takes it (llm.ToolChanges): by definitions of added tools, by the names of removed
// ones, or, where messages cannot remove tools, in words. A tool that words removed stays offered, and
// a call to it fails.

// offer follows the tools of a prompt from its beginning through its messages.
type offer struct {
	changes llm.ToolChanges
	current Setup             // that applies so far
	order   []string          // names of all tools so far
	keys    map[string]string // their definitions
}

func newOffer(first Setup, changes llm.ToolChanges) *offer {
	o := &offer{changes: changes, current: first, keys: maps.Clone(first.keys)}
	for _, spec := range first.Specs {
		o.order = append(o.order, spec.Name)
	}
	return o
}

// next goes on to another setup by the message, empty where the model sees no difference; false = none can do it.
func (o *offer) next(to Setup) (llm.Message, bool) {
	m := llm.Message{Role: core.RoleSystem}
	var lines []string
	switch text := to.text(); {
	case text == o.current.text():
	case text == "":
		lines = append(lines, setupWithdrawn)
	default:
		lines = append(lines, setupTitle+text)
	}
	if from := o.current; !maps.Equal(from.keys, to.keys) {
		before := o.missingIn(from)
		var ok bool
		if m.AddedTools, ok = o.addTools(to); !ok {
			return llm.Message{}, false
		}
		switch missing := o.missingIn(to); {
		case o.changes == llm.ToolsChangeable:
			m.RemovedTools = slices.DeleteFunc(missing, func(name string) bool { return from.keys[name] == "" })
		case slices.Equal(before, missing):
		case len(missing) == 0:
			lines = append(lines, toolsRestored)
		default:
			lines = append(lines, toolsRemoved+strings.Join(missing, ", ")+"]")
		}
	}
	o.current, m.Content = to, strings.Join(lines, "\n\n")
	return m, true
}

// leadsTo reports whether the prompt can go on to a setup and from there to the last one.
func (o *offer) leadsTo(next, last Setup) bool {
	then := *o
	then.order, then.keys = slices.Clone(o.order), maps.Clone(o.keys)
	if _, ok := then.next(next); !ok {
		return false
	}
	_, ok := then.next(last)
	return ok
}

// addTools adds the tools that are not offered so far, and returns them; false if no message can.
func (o *offer) addTools(to Setup) (added []llm.ToolSpec, ok bool) {
	if len(o.current.keys) == 0 || len(to.keys) == 0 {
		return nil, false
	}
	for _, spec := range to.Specs {
		known, isKnown := o.keys[spec.Name]
		if o.changes == llm.ToolsChangeable {
			known = o.current.keys[spec.Name]
		}
		switch {
		case known == to.keys[spec.Name]:
			continue
		case o.changes == llm.ToolsFixed, o.changes == llm.ToolsAdded && isKnown:
			return nil, false
		}
		added = append(added, spec)
	}
	for _, spec := range added {
		if o.keys[spec.Name] == "" {
			o.order = append(o.order, spec.Name)
		}
		o.keys[spec.Name] = to.keys[spec.Name]
	}
	return added, true
}

// missingIn returns the names of the tools so far that the setup lacks.
func (o *offer) missingIn(s Setup) []string {
	return slices.DeleteFunc(slices.Clone(o.order), func(name string) bool { return s.keys[name] != "" })
}
