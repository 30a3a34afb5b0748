package telemetry_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/telemetry"
	"bobbin/tests/must"
)

// TestEverythingIsCounted: every metric of the table gets a series, with its labels, when its
// event happens once; none is there that nothing counts.
func TestEverythingIsCounted(t *testing.T) {
	t.Parallel()
	exposed := series(t, true)
	for _, r := range telemetry.Rows() {
		name := r.Name
		if r.Type == "histogram" {
			name += "_count"
		}
		got, ok := exposed[name]
		if slices.Sort(got); !ok || !slices.Equal(got, slices.Sorted(slices.Values(r.Labels))) {
			t.Errorf("%s: exposed %t with the labels %q, want %q", name, ok, got, r.Labels)
		}
	}
}

// TestConventions: names and labels are those that Prometheus asks for.
func TestConventions(t *testing.T) {
	t.Parallel()
	for _, r := range telemetry.Rows() {
		if strings.Contains(r.Name, "milli") || strings.Contains(r.Name, "_ms") || !strings.HasSuffix(r.Help, ".") {
			t.Errorf("%s: %q: base units, and a sentence of help", r.Name, r.Help)
		}
		for _, l := range r.Labels {
			switch l {
			case "session", "session_id", "run", "run_id", "user", "user_id", "owner", "key", "path", "message":
				t.Errorf("%s has the label %s, which is not bounded", r.Name, l)
			}
		}
	}
}

// row matches a line of a table of metrics: name, type, labels, meaning.
var row = regexp.MustCompile("(?m)^\\| `(bobbin_[a-z_]+)` \\| ([a-z]+) \\|([^|]*)\\| ([^|]+) \\|$")

// TestDocumentation: docs/OBSERVABILITY.md has every metric, with its type and labels,
// and no other.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	var want, got, names []string
	for _, r := range telemetry.Rows() {
		names = append(names, r.Name)
		want = append(want, fmt.Sprintf("%s %s %v", r.Name, r.Type, slices.Sorted(slices.Values(r.Labels))))
	}
	text := must.Get(os.ReadFile("../../docs/OBSERVABILITY.md"))(t)
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		labels := strings.Fields(strings.ReplaceAll(m[3], "`", ""))
		got = append(got, fmt.Sprintf("%s %s %v", m[1], m[2], slices.Sorted(slices.Values(labels))))
	}
	known := series(t, false)
	for _, name := range metricName.FindAllString(string(text), -1) { // of examples too
		if _, ok := known[name]; !ok && !slices.Contains(names, family(name)) && name != "go_version" && !strings.HasSuffix(name, "_") { // that is a label
			t.Errorf("the document names %s, which is not there", name)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the table (-) and what is documented (+):\n%s", diff)
	}
}
