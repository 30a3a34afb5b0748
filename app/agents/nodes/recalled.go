package nodes

import (
	"slices"

	"bobbin/app/core"
)

// withRecalled returns the parts of an answer whose first bound thought says which passages its
// prompt quoted, unless an earlier message of the run says the same.
func withRecalled(parts []core.Part, c call, run []core.Message) []core.Part {
	i := slices.IndexFunc(parts, func(p core.Part) bool { return p.Prefix != "" })
	recalled := c.decision.RecalledPassages(c.sent.Recalled)
	if i < 0 || recalled == nil {
		return parts
	}
	for _, m := range slices.Backward(run) {
		j := slices.IndexFunc(m.Parts, func(p core.Part) bool { return p.Recalled != nil })
		if j < 0 {
			continue
		}
		if slices.Equal(m.Parts[j].Recalled.Passages, recalled.Passages) {
			return parts
		}
		break
	}
	parts[i].Recalled = recalled
	return parts
}

// withInstructions returns the parts of an answer whose first bound thought says that its prompt
// had the instructions of the run as a message of its own.
func withInstructions(parts []core.Part, c call) []core.Part {
	if i := slices.IndexFunc(parts, func(p core.Part) bool { return p.Prefix != "" }); i >= 0 {
		parts[i].Instructions = c.sent.Instructions
	}
	return parts
}

// withSetup returns the parts of an answer whose first bound thought says with which system prompt
// and tools it was produced.
func withSetup(parts []core.Part, c call) []core.Part {
	if i := slices.IndexFunc(parts, func(p core.Part) bool { return p.Prefix != "" }); i >= 0 {
		parts[i].Setup, parts[i].Frozen = c.decision.Setup, c.decision.Frozen
	}
	return parts
}
