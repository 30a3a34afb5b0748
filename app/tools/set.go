package tools

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Set is a collection of tools by name. It never changes and is safe for
// concurrent use.
type Set struct {
	tools map[string]Tool
}

// NewSet returns the set of the tools. Two of one name, or one without a name,
// are an error.
func NewSet(tools ...Tool) (*Set, error) {
	s := &Set{tools: make(map[string]Tool, len(tools))}
	var faults []error
	for _, tool := range tools {
		name := tool.Spec().Name
		switch _, known := s.tools[name]; {
		case name == "":
			faults = append(faults, errors.New("a tool has no name"))
		case known:
			faults = append(faults, fmt.Errorf("there are two tools %q", name))
		}
		s.tools[name] = tool
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	return s, nil
}

// Lookup returns the tool of the name, and false if there is none.
func (s *Set) Lookup(name string) (Tool, bool) {
	tool, ok := s.tools[name]
	return tool, ok
}

// Names returns the names of all tools, sorted; never nil.
func (s *Set) Names() []string {
	return append([]string{}, slices.Sorted(maps.Keys(s.tools))...)
}

// Specs returns what a model is told of the named tools, sorted by name, so that
// a prompt's tool list is the same whatever the order of the names (R5). Names
// that the set does not have are left out, and a name given twice counts once:
// Only finds faults, when an agent is loaded.
func (s *Set) Specs(names []string) []llm.ToolSpec {
	specs := make([]llm.ToolSpec, 0, len(names))
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if tool, ok := s.tools[name]; ok {
			specs = append(specs, tool.Spec())
		}
	}
	return specs
}

// Only returns the set of the named tools. Names that the set does not have are a
// core.ErrInvalid, which says those that it has.
func (s *Set) Only(names []string) (*Set, error) {
	only := &Set{tools: make(map[string]Tool, len(names))}
	var unknown []string
	for _, name := range names {
		if tool, ok := s.tools[name]; ok {
			only.tools[name] = tool
		} else {
			unknown = append(unknown, fmt.Sprintf("%q", name))
		}
	}
	if len(unknown) > 0 {
		return nil, core.Errorf(core.ErrInvalid, "unknown tools: %s; there are: %s", strings.Join(unknown, ", "), strings.Join(s.Names(), ", "))
	}
	return only, nil
}
