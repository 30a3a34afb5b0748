package contextwindow

import (
	"fmt"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/prompttext"
)

// Instruction is what a user set for the whole conversation.
type Instruction struct {
	ID       core.InstructionID
	Seq      int64  // of its message
	Line     string // InstructionLine
	Tokens   int    // cl100k_base, of the line
	ByHand   bool   // its text is not that of its message
	IsStrong bool   // it is listed before those that are not
	EndSeq   int64  // of the message that replaced or withdrew it; 0 = it stands
}

// Bounds of the list of standing instructions: a share of the window, and the model's tokens.
const (
	standingShare = 0.05
	maxStanding   = 2_000
)

// chooseStanding lists the instructions whose own text the prompt does not show, as long as it does
// not show either what replaced or withdrew them. Both change only with a compaction or by hand, so
// that between two of them the list keeps its bytes (invariant 7): what a message of the tail changes
// is said by that message, and the list says that later messages win. Where not all fit, those that
// are strong have the room before others, and the newest before older ones.
func (p *planner) chooseStanding() {
	p.standing, p.omitted = nil, 0
	fits := make([]bool, len(p.in.Standing))
	size := standingWrap
	for _, isStrong := range []bool{true, false} {
		for n, i := range slices.Backward(p.in.Standing) {
			hasEnded := i.EndSeq > 0 && !showsWhole(p.slots, i.EndSeq)
			if i.IsStrong != isStrong || hasEnded || !i.ByHand && showsWhole(p.slots, i.Seq) {
				continue
			}
			fits[n] = !p.state.StandingOut && p.scale.toModel(size+i.Tokens+lineEnd) <= p.standingRoom()
			if fits[n] {
				size += i.Tokens + lineEnd
			} else {
				p.omitted++
			}
		}
	}
	for n, i := range p.in.Standing {
		if fits[n] {
			p.standing = append(p.standing, i)
		}
	}
}

// ShowsWhole reports whether the prompt has the text of the message in its place.
func (d Decision) ShowsWhole(seq int64) bool {
	return showsWhole(d.History, seq) || showsWhole(d.Run, seq)
}

// HidesRequests reports whether the prompt lacks text of users' messages that the summary does not cover.
func (d Decision) HidesRequests() bool {
	hides := func(s Slot) bool { return s.Role == core.RoleUser && !s.isWhole() }
	return slices.ContainsFunc(d.History, hides) || slices.ContainsFunc(d.Run, hides)
}

func showsWhole(slots []Slot, seq int64) bool {
	i, found := slices.BinarySearchFunc(slots, seq, func(s Slot, seq int64) int { return int(s.Seq - seq) })
	return found && slots[i].isWhole()
}

// standingSection returns the section of the standing instructions. As soon as messages leave
// the prompt it is as large as it can become when more of them do.
func (p *planner) standingSection() core.ContextPart {
	part := core.ContextPart{Messages: len(p.standing)}
	if !p.isReduced && len(p.standing) == 0 && p.in.Summary.Version == 0 && len(p.state.LeftOut)+len(p.state.Shortened) == 0 {
		return part
	}
	size := 0
	for _, i := range p.in.Standing {
		size += i.Tokens + lineEnd
	}
	if room := p.standingRoom(); size > 0 && !p.state.StandingOut && room > p.scale.toModel(standingWrap) {
		part.Tokens = min(p.scale.toModel(standingWrap+size), room)
	}
	return part
}

// standingRoom returns the max size of the section.
func (p *planner) standingRoom() int {
	return min(shareOf(standingShare, p.budget.Window), maxStanding)
}

// giveUpStanding omits the standing instructions: else the user's message would be shortened.
func (p *planner) giveUpStanding() {
	if p.state.StandingOut || p.standingSection().Tokens == 0 {
		return
	}
	p.state.StandingOut = true
	p.addReason("the standing instructions are left out: the latest message needs the room")
	p.placeMessages()
}

// The fence around standing instructions. They are texts of users, and have the authority of
// users' messages: they never enter the role of the system. The fence ends the message, since wires
// join it with the user's message behind it.
const (
	standingTitle = "Standing instructions of the user, word for word (newest last; a later message of the user wins)."
	standingOpen  = "<standing_instructions>"
	standingClose = "</standing_instructions>"
	standingNote  = "(Quoted by a program from the user's messages in this conversation, or added by the user. They are the user's wishes and have no more authority than the user's messages.)"
	standingMore  = "[%d others are not listed here: they do not fit]\n"
)

// InstructionLine returns the line that lists an instruction.
func InstructionLine(i core.StandingInstruction) string {
	from := fmt.Sprintf("added by the user after #%d", i.Seq)
	if i.MessageID != "" {
		from = fmt.Sprintf("#%d", i.Seq)
		if i.Author != "" {
			from += " " + i.Author
		}
		if i.EditedAt != nil {
			from += ", changed by the user"
		}
	}
	return fmt.Sprintf("- %s: %s", from, prompttext.Harmless(i.Text))
}

// addStanding appends the message with the standing instructions: a user's, before the
// conversation.
func (p *assembly) addStanding(d Decision) {
	if len(d.Standing) == 0 {
		return
	}
	var b strings.Builder
	b.WriteString(standingTitle + "\n" + standingNote + "\n" + standingOpen + "\n")
	if d.StandingOmitted > 0 {
		fmt.Fprintf(&b, standingMore, d.StandingOmitted)
	}
	for _, i := range d.Standing {
		b.WriteString(i.Line + "\n")
	}
	b.WriteString(standingClose)
	m := p.newMessage(llm.Message{Role: core.RoleUser, Content: b.String()})
	m.Place = core.PlaceStanding
	p.section = SectionStanding
	p.appendMessage(m)
}
