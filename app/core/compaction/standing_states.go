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
	var out []core.StandingInstruction
	at := map[string]int{}
	var stand []standing.Instruction // the newest
	for n, i := range given {
		if i.State = core.InstructionStands; i.RemovedAt != nil {
			i.State = core.InstructionRemoved
		}
		if n < len(given)-resolvedInstructions {
			if !i.Withdraws && !i.Amends {
				out = append(out, i)
			}
			continue
		}
		effect := standing.Apply(stand, standing.Found{
			Text: i.Text, Language: i.Language, Speaker: i.Speaker, Topic: i.Topic, Withdraws: i.Withdraws, Amends: i.Amends,
		})
		for _, id := range effect.Ends {
			ended := &out[at[id]]
			if ended.State = core.InstructionReplaced; i.Withdraws {
				ended.State = core.InstructionWithdrawn
			}
			if i.MessageID != "" {
				ended.EndSeq = i.Seq
			}
		}
		stand = slices.DeleteFunc(stand, func(s standing.Instruction) bool { return slices.Contains(effect.Ends, s.ID) })
		if !effect.Stands {
			continue
		}
		at[string(i.ID)] = len(out)
		out = append(out, i)
		if i.RemovedAt == nil {
			stand = append(stand, standing.Instruction{ID: string(i.ID), Text: i.Text, Speaker: i.Speaker, Topic: effect.Topic})
			stand = stand[max(len(stand)-core.MaxPromptedStanding, 0):]
		}
	}
	return out
}
