package compaction

import (
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/standing"
)

// resolvedInstructions bounds how many of the newest instructions are compared with each other
// to find those that stand.
const resolvedInstructions = 300

// ResolveInstructions returns the instructions with their states; they are in the order in
// which they were given. Those that never stood are not returned: what only withdraws others,
// or changes what is not there. The oldest of many stand, whatever others say: no prompt lists
// them.
func ResolveInstructions(given []core.StandingInstruction) []core.StandingInstruction {
	older := max(len(given)-resolvedInstructions, 0)
	return append(listUnresolved(given[:older]), resolveInstructions(given[older:])...)
}

// resolveInstructions is ResolveInstructions for those that are compared.
func resolveInstructions(given []core.StandingInstruction) []core.StandingInstruction {
	var out []core.StandingInstruction
	at := map[string]int{}
	var stand []standing.Instruction // the newest
	for _, i := range given {
		effect := standing.Apply(stand, standing.Found{
			Text: i.Text, Language: i.Language, Speaker: i.Speaker, Topic: i.Topic, Withdraws: i.Withdraws, Amends: i.Amends,
		})
		for _, id := range effect.Ends {
			out[at[id]] = endedBy(out[at[id]], i)
		}
		stand = slices.DeleteFunc(stand, func(s standing.Instruction) bool { return slices.Contains(effect.Ends, s.ID) })
		if !effect.Stands {
			continue
		}
		at[string(i.ID)] = len(out)
		if i.State = core.InstructionStands; i.RemovedAt != nil {
			i.State = core.InstructionRemoved
		} else {
			stand = append(stand, standing.Instruction{ID: string(i.ID), Text: i.Text, Speaker: i.Speaker, Topic: effect.Topic})
			stand = stand[max(len(stand)-core.MaxPromptedStanding, 0):]
		}
		out = append(out, i)
	}
	return out
}

// endedBy returns the instruction as the newer one leaves it.
func endedBy(i, newer core.StandingInstruction) core.StandingInstruction {
	if i.State = core.InstructionReplaced; newer.Withdraws {
		i.State = core.InstructionWithdrawn
	}
	if newer.MessageID != "" {
		i.EndSeq = newer.Seq
	}
	return i
}

// listUnresolved is ResolveInstructions for those that are not compared.
func listUnresolved(given []core.StandingInstruction) []core.StandingInstruction {
	var out []core.StandingInstruction
	for _, i := range given {
		if i.State = core.InstructionStands; i.RemovedAt != nil {
			i.State = core.InstructionRemoved
		}
		if !i.Withdraws && !i.Amends {
			out = append(out, i)
		}
	}
	return out
}
