package nodes

import (
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

// withNotes returns the parts of an answer whose first bound thought says what its prompt had beside messages:
// the instructions of the run as a message of its own, the system prompt and the tools, and the passages that it
// quoted, unless an earlier message of the run says the same.
func withNotes(parts []core.Part, c call, run []core.Message) []core.Part {
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
