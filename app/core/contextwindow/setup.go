package contextwindow

import (
	"cmp"
	"encoding/json"
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
// there, as long as a thought behind it is sent. A tool that was removed stays in the list, and the
// message says so; a tool that was added ends the freeze, since no message can add it. So does
// whatever drops the thoughts.

// Setup is a system prompt with its tools, and their sizes in cl100k_base tokens.
type Setup struct {
	core.PromptSetup
	Specs      []llm.ToolSpec
	System     int // of the system blocks
	ToolTokens int // of the tool definitions
	appended   int // of the message that appends the system prompt
	names      int // of a line with the names of all tools
	keys       []string
}

// Setups are setups by their hashes.
type Setups map[string]Setup

// NewSetup returns the setup with its sizes.
func NewSetup(s core.PromptSetup, count llm.TokenCounter) (Setup, error) {
	out := Setup{PromptSetup: s}
	if err := json.Unmarshal(s.Tools, &out.Specs); err != nil {
		return Setup{}, err
	}
	var definitions []json.RawMessage
	if err := json.Unmarshal(s.Tools, &definitions); err != nil {
		return Setup{}, err
	}
	names := make([]string, len(out.Specs))
	for i, spec := range out.Specs {
		names[i] = spec.Name
		out.keys = append(out.keys, string(definitions[i]))
	}
	slices.Sort(out.keys)
	out.System = SystemTokens(Parts{SystemPrompt: s.SystemPrompt, ToolUsage: s.ToolUsage}, count)
	out.ToolTokens = count.Tools(out.Specs)
	out.appended = tokens.Prompted(count.Text, llm.Message{Content: setupTitle + out.text()})
	out.names = count.Text(toolsLine(names)) + blockOverhead
	return out, nil
}

// text returns the system prompt as a message has it.
func (s Setup) text() string {
	return strings.TrimSpace(s.SystemPrompt + "\n\n" + s.ToolUsage)
}

// covers reports whether a prompt that begins with the setup can go on with another: all tools of
// the other are in its list.
func (s Setup) covers(other Setup) bool {
	if len(other.keys) == 0 {
		return len(s.keys) == 0
	}
	for _, key := range other.keys {
		if _, found := slices.BinarySearch(s.keys, key); !found {
			return false
		}
	}
	return true
}

// appendedTokens returns the max tokens of the message that appends another setup to a prompt that
// begins with this one.
func (s Setup) appendedTokens(other Setup) int { return other.appended + s.names }

// The texts of the message.
const (
	setupTitle     = "[The system prompt from here on, in place of the one at the beginning:]\n"
	setupWithdrawn = "[The system prompt at the beginning no longer applies.]"
	toolsRemoved   = "[From here on these tools no longer exist, do not call them: "
	toolsRestored  = "[From here on all tools exist again.]"
)

// toolsLine says that tools no longer exist.
func toolsLine(names []string) string {
	if len(names) == 0 {
		return toolsRestored
	}
	return toolsRemoved + strings.Join(names, ", ") + "]"
}

// changeText returns the text of the message with which a prompt that begins with frozen goes on
// from one setup to the next; empty if the model sees no difference.
func changeText(frozen, from, to Setup) string {
	var lines []string
	switch text := to.text(); {
	case text == from.text():
	case text == "":
		lines = append(lines, setupWithdrawn)
	default:
		lines = append(lines, setupTitle+text)
	}
	if !slices.Equal(from.keys, to.keys) {
		var removed []string
		for _, spec := range frozen.Specs {
			if !slices.ContainsFunc(to.Specs, func(s llm.ToolSpec) bool { return s.Name == spec.Name }) {
				removed = append(removed, spec.Name)
			}
		}
		lines = append(lines, toolsLine(removed))
	}
	return strings.Join(lines, "\n\n")
}

// addSetup adds the setup with which the message's thought was produced.
func (it *Item) addSetup(thought core.Part, model llm.Info) {
	if it.Setup == "" && model.AppendsInstructions() {
		it.Setup, it.Frozen = thought.Setup, thought.Frozen
	}
}

// first returns the setup at the beginning of the prompt of the message's thoughts; empty = it is
// not known.
func (it Item) first() string { return cmp.Or(it.Frozen, it.Setup) }

// sendsThoughts reports whether the message is sent with thoughts.
func (s Slot) sendsThoughts() bool {
	return s.Thoughts > 0 && !s.Bare && s.Place == core.PlaceVerbatim
}

// firstSetup returns the setup with which a prompt of the slots begins, so that their thoughts stay
// valid: that of the newest; empty = not known, or none.
func firstSetup(slots []Slot) string {
	for _, s := range slices.Backward(slots) {
		if s.sendsThoughts() {
			return s.first()
		}
	}
	return ""
}

// placedSetup says how a prompt differs from one that begins with the current setup. Sizes are in
// cl100k_base tokens.
type placedSetup struct {
	frozen        string // with which it begins; empty = with the current one
	system, tools int    // how much larger these are at its beginning
	appended      int    // the current one at its end; 0 = it is not appended
}

// placeSetups finds out with which setup the prompt begins, and adds the later ones to the slots
// whose thoughts were produced with them.
func (p *planner) placeSetups(slots []Slot) {
	p.setup = placedSetup{}
	hash := firstSetup(slots)
	first, known := p.in.Setups[hash]
	current, ok := p.in.Setups[p.in.Setup]
	if !known || !ok || !first.covers(current) {
		return
	}
	last := hash
	for i := range slots {
		s := &slots[i]
		next, known := p.in.Setups[s.Setup]
		if s.Setup == last || s.first() != hash || !s.sendsThoughts() || !known || !first.covers(next) {
			continue
		}
		s.NewSetup, last = s.Setup, s.Setup
		s.Size += p.scale.toModel(first.appendedTokens(next))
	}
	if last != p.in.Setup {
		p.setup.appended = first.appendedTokens(current)
	}
	if hash != p.in.Setup {
		p.setup.frozen, p.setup.system, p.setup.tools = hash, first.System-current.System, first.ToolTokens-current.ToolTokens
	}
}

// dropSetups lets the prompt begin with the current setup, without the thoughts that are bound to
// another. It reports false if there are none.
func (p *planner) dropSetups() bool {
	if p.setup == (placedSetup{}) && !slices.ContainsFunc(p.slots, func(s Slot) bool { return s.NewSetup != "" }) {
		return false
	}
	from := p.slots[slices.IndexFunc(p.slots, Slot.sendsThoughts)].Seq
	p.addRung(0)
	p.addReason("%d messages are sent without their thoughts: the conversation needs the room of an earlier system prompt", p.thoughtsFrom(from))
	p.state.ThoughtsDropped = withRange(p.state.ThoughtsDropped, SeqRange{from, p.slots[len(p.slots)-1].Seq})
	p.placeMessages()
	return true
}

// staysValid reports whether the thoughts of the slots stay valid when the current setup changes.
func (in Input) staysValid(slots []Slot) bool {
	first := firstSetup(slots)
	_, known := in.Setups[first]
	return first != "" && (known || first == in.Setup)
}

// withFrozen returns the parts with the setup with which the prompt of the decision begins.
func (p Parts) withFrozen(d Decision) Parts {
	first, known := p.Setups[d.Frozen]
	if !known {
		return p
	}
	p.SystemPrompt, p.ToolUsage = first.SystemPrompt, first.ToolUsage
	if !slices.Equal(first.keys, p.Setups[d.Setup].keys) {
		p.ToolSpecs, p.Tools = first.Specs, first.ToolTokens
	}
	return p
}

// addSetups inserts the later setups, each before the first answer that was produced with it.
func (p *assembly) addSetups(d Decision) {
	last, from := cmp.Or(d.Frozen, d.Setup), 0
	for n, s := range slices.Concat(d.History, d.Run) {
		if s.NewSetup == "" {
			continue
		}
		i := slices.IndexFunc(p.Messages[from:], func(m PromptMessage) bool { return m.ID == s.ID })
		m, differs := p.newSetup(d, last, s.NewSetup)
		last = s.NewSetup
		if i < 0 || !differs {
			continue
		}
		m.Quotes = true
		p.Messages = slices.Insert(p.Messages, from+i, m)
		from += i + 1
		if n < len(d.History) {
			p.Sent.Tail += m.Tokens
			p.runFrom++
		} else {
			p.Sent.Run += m.Tokens
		}
	}
	if !d.AppendsSetup {
		return
	}
	if m, differs := p.newSetup(d, last, d.Setup); differs {
		p.Messages = append(p.Messages, m)
		p.Sent.System += m.Tokens
	}
}

// newSetup returns the message that goes on from one setup to the next; false if there is nothing
// to say.
func (p *assembly) newSetup(d Decision, from, to string) (PromptMessage, bool) {
	setups := p.parts.Setups
	text := changeText(setups[cmp.Or(d.Frozen, d.Setup)], setups[from], setups[to])
	m := p.newMessage(llm.Message{Role: core.RoleSystem, Content: text})
	m.Place = core.PlaceSystem
	return m, text != ""
}
