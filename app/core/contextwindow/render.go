package contextwindow

import (
	"bobbin/app/core"
)

// Rendered are messages as prompts show them, which may be much shorter than their texts: a
// caller that keeps them need not keep the texts.
type Rendered map[Form]PromptMessage

// Form is a message and how a prompt shows it. Two messages of the same form have the same
// bytes.
type Form struct {
	id     core.MessageID
	place  core.Placement
	limit  int
	orphan bool
	reads  bool // see Parts.ReadsResults
	model  string
}

// formOf returns the form that the slot requires.
func (p Parts) formOf(s Slot) Form {
	return Form{id: s.ID, place: s.Place, limit: s.Limit, orphan: s.Orphan, reads: p.ReadsResults, model: p.Model.Name}
}

// Unloaded returns the slots whose messages the prompt of the decision shows and whose texts
// the parts lack: those that can be rendered one by one (Render), and those that Assemble
// needs whole, because they are quoted or have images and files. Forms are the Rendered of
// the parts that Assemble uses.
func Unloaded(parts Parts, d Decision) (render, whole []Slot, forms Rendered) {
	forms = Rendered{}
	for s := range joined(d.Pinned, d.History, d.Run) {
		m := parts.message(s.ID)
		shown := s.Place == core.PlaceVerbatim || s.Place == core.PlaceShortened
		if m.Unloaded == 0 || !shown {
			continue
		}
		rendered, ok := parts.Rendered[parts.formOf(s)]
		switch {
		case s.Note || hasFiles(m):
			whole = append(whole, s)
		case !ok:
			render = append(render, s)
		default:
			forms[parts.formOf(s)] = rendered
		}
	}
	return render, whole, forms
}

// Render returns the messages of the slots as the prompt shows them. From the parts it uses
// only the facts about agent and model.
func Render(parts Parts, slots []Slot, messages map[core.MessageID]*core.Message, count core.TextCounter) Rendered {
	p := assembly{count: count, parts: parts, files: attachments{model: parts.Model}}
	forms := make(Rendered, len(slots))
	for _, s := range slots {
		forms[parts.formOf(s)] = p.renderMessage(s, *messages[s.ID])
	}
	return forms
}
