package tools

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Set is a collection of tools by name, and of the sources of the tools that files describe. Its
// own tools never change. Safe for concurrent use.
type Set struct {
	tools   map[string]*Custom
	sources sources
}

// NewSet returns the set of the tools.
func NewSet(tools ...*Custom) *Set {
	s := &Set{tools: make(map[string]*Custom, len(tools))}
	for _, tool := range tools {
		s.tools[tool.Definition.Name] = tool
	}
	return s
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
			specs = append(specs, tool.Definition)
		}
	}
	return specs
}

// NewListing returns the listing of the tools, sorted by name.
func NewListing(list []*Custom) Listing {
	list = slices.SortedFunc(slices.Values(list), func(a, b *Custom) int { return cmp.Compare(a.Definition.Name, b.Definition.Name) })
	hash := sha256.New()
	for _, tool := range list {
		spec, _ := json.Marshal(tool.Definition) // a name, a text and JSON that was checked
		hash.Write(spec)
		hash.Write([]byte(tool.Approval))
	}
	return Listing{Tools: list, Hash: hex.EncodeToString(hash.Sum(nil)[:8])}
}

// find returns the tool of the name.
func (l Listing) find(name string) (*Custom, bool) {
	i, ok := slices.BinarySearchFunc(l.Tools, name, func(tool *Custom, name string) int { return cmp.Compare(tool.Definition.Name, name) })
	if !ok {
		return nil, false
	}
	return l.Tools[i], true
}

// maxName is the longest name of a function, or of an argument, that providers take.
const maxName = 64

// unfit matches what they do not take in it.
var unfit = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// FitName returns the name of a function in letters that providers take, and no longer than they take. One that
// fits stays as it is.
func FitName(name string) string { return core.Clip(unfit.ReplaceAllString(name, "_"), maxName) }

// Namer gives the tools of one definition, or the arguments of one tool, the names that models use.
type Namer struct {
	prefix string
	own    []string // the names of all: no other one gets a name that is somebody's own
	taken  map[string]bool
}

// NewNamer returns the Namer of a definition that has tools of these names.
func NewNamer(definition string, own []string) *Namer {
	return &Namer{prefix: definition + core.ToolSeparator, own: own, taken: map[string]bool{}}
}

// Name returns a name for the tool: the definition's name, __, and the tool's own in the letters that
// providers take. The same tools in the same order have the same names; two never have one, and one
// whose own name fits has that.
func (n *Namer) Name(tool string) string {
	fit := unfit.ReplaceAllString(tool, "_")
	name := n.prefix + fit
	if len(name) > maxName || n.taken[name] || fit != tool && slices.Contains(n.own, fit) {
		sum := sha256.Sum256([]byte(tool))
		tail := "_" + hex.EncodeToString(sum[:4])
		name = core.Clip(name, maxName-len(tail)) + tail
	}
	for i := 2; n.taken[name]; i++ {
		tail := fmt.Sprintf("_%d", i)
		name = core.Clip(name, maxName-len(tail)) + tail
	}
	n.taken[name] = true
	return name
}
