package telemetry

import "strings"

// other is the label of what is not one of a known few.
const other = "other"

// Labels turn names into labels. A name may have come from outside: each function
// returns one of a bounded number of labels, whatever it is given. Without a
// function everything is "other".
type Labels struct {
	Model func(name string) string
	Agent func(name string) string
	Tool  func(name string) string
}

func (l Labels) model(name string) string { return label(l.Model, name) }
func (l Labels) agent(name string) string { return label(l.Agent, name) }
func (l Labels) tool(name string) string  { return label(l.Tool, name) }

// label returns the name's label, in the UTF-8 that Prometheus insists on.
func label(of func(string) string, name string) string {
	if of == nil {
		return other
	}
	return strings.ToValidUTF8(of(name), "\uFFFD")
}
