package telemetry

import (
	"regexp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// described matches the name in what a Desc says of itself.
var described = regexp.MustCompile(`fqName: "([^"]+)"`)

// Described returns the names of all metrics that can be exposed, also of those that
// have no series yet.
func (t *Telemetry) Described() []string {
	ch := make(chan *prometheus.Desc)
	go func() {
		defer close(ch)
		t.registry.Describe(ch)
	}()
	var names []string
	for desc := range ch {
		if m := described.FindStringSubmatch(desc.String()); m != nil {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
