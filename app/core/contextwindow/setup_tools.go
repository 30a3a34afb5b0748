package contextwindow

import (
	"maps"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// A prompt begins with the tools of its thoughts and goes on with others. What is new about them is
// said as the model takes it (llm.ToolChanges): by definitions of added tools, by the names of removed
// ones, or, where messages cannot remove tools, in words. A tool that words removed stays offered, and
// a call to it fails.

// offer follows the tools of a prompt from its beginning through its messages.
type offer struct {
	changes llm.ToolChanges
	current Setup             // that applies so far
	order   []string          // names of all tools so far
	keys    map[string]string // their definitions
}

func newOffer(first Setup, changes llm.ToolChanges) *offer {
	o := &offer{changes: changes, current: first, keys: maps.Clone(first.keys)}
	for _, spec := range first.Specs {
		o.order = append(o.order, spec.Name)
	}
	return o
}

// next goes on to another setup by the message; it is empty where the model sees no difference. It
// returns false if no message can do it.
func (o *offer) next(to Setup) (llm.Message, bool) {
	m := llm.Message{Role: core.RoleSystem}
	var lines []string
	switch text := to.text(); {
	case text == o.current.text():
	case text == "":
		lines = append(lines, setupWithdrawn)
	default:
		lines = append(lines, setupTitle+text)
	}
	if from := o.current; !maps.Equal(from.keys, to.keys) {
		before := o.missingIn(from)
		var ok bool
		if m.AddedTools, ok = o.addTools(to); !ok {
			return llm.Message{}, false
		}
		switch missing := o.missingIn(to); {
		case o.changes == llm.ToolsChangeable:
			m.RemovedTools = slices.DeleteFunc(missing, func(name string) bool { return from.keys[name] == "" })
		case slices.Equal(before, missing):
		case len(missing) == 0:
			lines = append(lines, toolsRestored)
		default:
			lines = append(lines, toolsRemoved+strings.Join(missing, ", ")+"]")
		}
	}
	o.current, m.Content = to, strings.Join(lines, "\n\n")
	return m, true
}

// leadsTo reports whether the prompt can go on to a setup and from there to the last one.
func (o *offer) leadsTo(next, last Setup) bool {
	then := *o
	then.order, then.keys = slices.Clone(o.order), maps.Clone(o.keys)
	if _, ok := then.next(next); !ok {
		return false
	}
	_, ok := then.next(last)
	return ok
}

// addTools adds the tools that are not offered so far, and returns them; false if no message can, as
// where there were no tools, or are none.
func (o *offer) addTools(to Setup) (added []llm.ToolSpec, ok bool) {
	if len(o.current.keys) == 0 || len(to.keys) == 0 {
		return nil, false
	}
	for _, spec := range to.Specs {
		known, isKnown := o.keys[spec.Name]
		if o.changes == llm.ToolsChangeable {
			known = o.current.keys[spec.Name]
		}
		switch {
		case known == to.keys[spec.Name]:
			continue
		case o.changes == llm.ToolsFixed, o.changes == llm.ToolsAdded && isKnown:
			return nil, false
		}
		added = append(added, spec)
	}
	for _, spec := range added {
		if o.keys[spec.Name] == "" {
			o.order = append(o.order, spec.Name)
		}
		o.keys[spec.Name] = to.keys[spec.Name]
	}
	return added, true
}

// missingIn returns the names of the tools so far that the setup lacks.
func (o *offer) missingIn(s Setup) []string {
	return slices.DeleteFunc(slices.Clone(o.order), func(name string) bool { return s.keys[name] != "" })
}
