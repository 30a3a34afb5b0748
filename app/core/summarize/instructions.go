package summarize

import (
	"slices"
	"strconv"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/prompttext"
)

// quotable returns the messages as code may quote them: without what users set in them for the
// whole conversation, which prompts list beside the summary while it stands. A message whose
// instruction was edited by hand is not quoted, as the instruction's own words are not known.
func (r Request) quotable() []core.Message {
	messages := slices.Clone(r.Messages)
	for i, m := range messages {
		for _, in := range r.Instructions {
			switch {
			case m.ID == "" || in.MessageID != m.ID:
			case in.EditedAt != nil:
				messages[i].Content = ""
			default:
				messages[i].Content = strings.Replace(messages[i].Content, in.Text, "", 1)
			}
		}
	}
	return messages
}

// dropInstructions removes the instructions from the users' messages that earlier summaries quoted.
func (o outline) dropInstructions(instructions []core.StandingInstruction) {
	said := o.section(userHeading)
	if said == nil {
		return
	}
	for _, in := range instructions {
		text := prompttext.Line(prompttext.Harmless(in.Text), lineBytes)
		for i, l := range said.lines {
			if in.EditedAt != nil && in.Seq > 0 && l.ref == strconv.FormatInt(in.Seq, 10) {
				said.lines[i].text = ""
				continue
			}
			said.lines[i].text = prompttext.Line(strings.Replace(l.text, text, "", 1), lineBytes)
		}
	}
	said.lines = slices.DeleteFunc(said.lines, func(l line) bool { return l.text == "" })
}
