package nodes

import (
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/tokens"
)

// boundParts returns the parts of the answer with what their thoughts are bound to. Where the provider
// left out thoughts of the prompt, it is not known behind which prompt the answer was produced: its thoughts
// do not go back. The first bound thought says what its prompt had beside messages: the instructions of the
// run as a message of its own, the system prompt and the tools, and the passages that it quoted, unless an
// earlier message of the run says the same.
func (n *LLM) boundParts(c call, run []core.Message) []core.Part {
	parts := slices.Clone(c.response.Parts)
	for i := range parts {
		if p := &parts[i]; p.Type == core.PartReasoning && p.Origin != "" {
			p.Tokens = tokens.Thought(n.Counter.Text, *p)
			if c.response.Dropped == nil {
				p.Prefix = c.prefix
			}
		}
	}
	i := slices.IndexFunc(parts, func(p core.Part) bool { return p.Prefix != "" })
	if i < 0 {
		return parts
	}
	p := &parts[i]
	p.Instructions, p.Setup, p.Frozen = c.sent.Instructions, c.decision.Setup, c.decision.Frozen
	p.Recalled = c.decision.RecalledPassages(c.sent.Of[contextwindow.SectionRecalled])
	if p.Recalled == nil {
		return parts
	}
	for _, m := range slices.Backward(run) {
		j := slices.IndexFunc(m.Parts, func(p core.Part) bool { return p.Recalled != nil })
		if j < 0 {
			continue
		}
		if slices.Equal(m.Parts[j].Recalled.Passages, p.Recalled.Passages) {
			p.Recalled = nil
		}
		break
	}
	return parts
}
