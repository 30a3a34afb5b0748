package term

import (
	"fmt"

	"bobbin/app/core"
)

// shownInstructions bounds the instructions of a context report that are shown.
const shownInstructions = 20

// drawInstructions lists the newest of those that stand, with their places in the prompt.
func (d drawing) drawInstructions(list []core.StandingInstruction) {
	if len(list) == 0 {
		return
	}
	d.writeLine("  standing instructions:")
	for _, i := range list[max(len(list)-shownInstructions, 0):] {
		from := "added"
		if i.MessageID != "" {
			from = fmt.Sprintf("#%d", i.Seq)
		}
		if i.EditedAt != nil {
			from += ", edited"
		}
		note := ""
		switch {
		case i.EndSeq > 0:
			note = fmt.Sprintf(" (%s by #%d)", i.State, i.EndSeq)
		case i.State != core.InstructionStands:
			note = fmt.Sprintf(" (%s)", i.State)
		case i.Placement == core.PlaceLeftOut:
			note = " (left out: it does not fit)"
		case i.Placement == core.PlaceVerbatim:
			note = " (in its message)"
		}
		d.writeLine("  - %s", fmt.Sprintf("%s: %s%s", from, Line(i.Text, core.MaxInstructionText), note))
	}
	if n := len(list) - shownInstructions; n > 0 {
		d.writeLine("  and %s", Pluralize(n, "older one"))
	}
}
