package contextwindow

import (
	"maps"
	"slices"
	"strings"

	"bobbin/app/core/llm"
)

// A prompt begins with the tools of its thoughts and goes on with others. What is new about them is
// said as the model takes it (llm.ToolChanges): by definitions of added tools, by the names of removed
// ones, or, where messages cannot remove tools, in words. A tool that words removed stays offered, and
// a call to it fails.

// setupTool is a tool of a setup.
type setupTool struct {
	key        string // its definition
	tokens     int    // of the definition in a message
	nameTokens int    // of the name in a list or in a block
}

// offer follows the tools of a prompt from its beginning through its messages.
type offer struct {
	changes llm.ToolChanges
	current Setup             // that applies so far
	order   []string          // names of all tools so far
	keys    map[string]string // their definitions
	names   int               // max tokens of a line with all names
}

func newOffer(first Setup, changes llm.ToolChanges) *offer {
	o := &offer{changes: changes, current: first, keys: map[string]string{}, names: first.names}
	for _, spec := range first.Specs {
		o.order = append(o.order, spec.Name)
		o.keys[spec.Name] = first.tools[spec.Name].key
	}
	return o
}

// setupChange is how a prompt goes on from one setup to another.
type setupChange struct {
	text    string // empty = the model sees no difference, or only one of the tools below
	added   []llm.ToolSpec
	removed []string
	tokens  int // max, of the message
}

// next goes on to another setup; false if no message can do it.
func (o *offer) next(to Setup) (setupChange, bool) {
	from := o.current
	c := setupChange{tokens: to.overhead}
	var lines []string
	switch text := to.text(); {
	case text == from.text():
	case text == "":
		lines = append(lines, setupWithdrawn)
		c.tokens += to.appended
	default:
		lines = append(lines, setupTitle+text)
		c.tokens += to.appended
	}
	if !slices.Equal(from.keys, to.keys) {
		before := o.missingIn(from)
		if len(from.keys) == 0 || len(to.keys) == 0 || !o.addTools(to, &c) {
			return setupChange{}, false
		}
		switch missing := o.missingIn(to); {
		case o.changes == llm.ToolsChangeable:
			c.removeTools(from, missing)
		case !slices.Equal(before, missing):
			lines = append(lines, toolsLine(missing))
			c.tokens += o.names
		}
	}
	o.current = to
	c.text = strings.Join(lines, "\n\n")
	return c, true
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

// addTools adds the tools that are not offered so far; false if no message can.
func (o *offer) addTools(to Setup, c *setupChange) bool {
	var added []llm.ToolSpec
	for _, spec := range to.Specs {
		known, isKnown := o.keys[spec.Name]
		if o.changes == llm.ToolsChangeable {
			known = o.current.tools[spec.Name].key
		}
		switch {
		case known == to.tools[spec.Name].key:
			continue
		case o.changes == llm.ToolsFixed, o.changes == llm.ToolsAdded && isKnown:
			return false
		}
		added = append(added, spec)
	}
	for _, spec := range added {
		tool := to.tools[spec.Name]
		if _, isKnown := o.keys[spec.Name]; !isKnown {
			o.order = append(o.order, spec.Name)
			o.names += tool.nameTokens
		}
		o.keys[spec.Name] = tool.key
		c.tokens += tool.tokens
	}
	c.added = added
	return true
}

// removeTools removes those of the tools that are offered.
func (c *setupChange) removeTools(from Setup, names []string) {
	for _, name := range names {
		if tool, isOffered := from.tools[name]; isOffered {
			c.removed = append(c.removed, name)
			c.tokens += tool.nameTokens
		}
	}
}

// missingIn returns the names of the tools so far that the setup lacks.
func (o *offer) missingIn(s Setup) []string {
	var names []string
	for _, name := range o.order {
		if _, ok := s.tools[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}
