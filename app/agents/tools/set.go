package tools

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"bobbin/app/core/llm"
)

// Set is a collection of tools by name, and of the sources of the tools that files describe. Its
// own tools never change. Safe for concurrent use.
type Set struct {
	tools   map[string]Tool
	sources sources
}

// NewSet returns the set of the tools. A duplicate or empty name is an error.
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

// Names returns the names of all tools, sorted; never nil.
func (s *Set) Names() []string {
	return append([]string{}, slices.Sorted(maps.Keys(s.tools))...)
}

// Specs returns the definitions of the named tools, sorted by name, so that a prompt's
// tool list does not depend on the order of the names. It ignores unknown and duplicate
// names: Only reports them when an agent is loaded.
func (s *Set) Specs(names []string) []llm.ToolSpec {
	specs := make([]llm.ToolSpec, 0, len(names))
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		if tool, ok := s.tools[name]; ok {
			specs = append(specs, tool.Spec())
		}
	}
	return specs
}
