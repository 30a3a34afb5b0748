package telemetry_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/google/go-cmp/cmp"
)

// ours returns the names of the families that are Bobbin's own.
func ours(all map[string]*dto.MetricFamily) []string {
	names := slices.Sorted(maps.Keys(all))
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, "bobbin_") })
}

// labelsOf returns the labels of a family's first series, sorted.
func labelsOf(f *dto.MetricFamily) []string {
	var names []string
	for _, l := range f.GetMetric()[0].GetLabel() {
		names = append(names, l.GetName())
	}
	slices.Sort(names)
	return names
}

// TestEverythingIsCounted: every registered metric gets a series when its event happens once;
// none is registered but never counted.
func TestEverythingIsCounted(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	everything(t, tel)
	want := slices.DeleteFunc(tel.Described(), func(name string) bool { return !strings.HasPrefix(name, "bobbin_") })
	if diff := cmp.Diff(want, ours(families(t, tel))); diff != "" || len(want) < 40 {
		t.Errorf("registered (-) and exposed (+):\n%s", diff)
	}
}

// TestConventions: names and labels are those that Prometheus asks for.
func TestConventions(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	everything(t, tel)
	all := families(t, tel)
	for _, name := range ours(all) {
		f := all[name]
		counter := f.GetType() == dto.MetricType_COUNTER
		if strings.HasSuffix(name, "_total") != counter {
			t.Errorf("%s is a %s: counters, and only they, end in _total", name, f.GetType())
		}
		if strings.Contains(name, "milli") || strings.Contains(name, "_ms") || !strings.HasSuffix(f.GetHelp(), ".") {
			t.Errorf("%s: %q: base units, and a sentence of help", name, f.GetHelp())
		}
		for _, l := range labelsOf(f) {
			switch l {
			case "session", "session_id", "run", "run_id", "user", "user_id", "owner", "key", "path", "message":
				t.Errorf("%s has the label %s, which is not bounded", name, l)
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
	tel := newTelemetry(t)
	everything(t, tel)
	var want []string
	for _, name := range ours(families(t, tel)) {
		f := families(t, tel)[name]
		want = append(want, fmt.Sprintf("%s %s %v", name, strings.ToLower(f.GetType().String()), labelsOf(f)))
	}
	text, err := os.ReadFile("../../docs/OBSERVABILITY.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		labels := strings.Fields(strings.ReplaceAll(m[3], "`", ""))
		slices.Sort(labels)
		got = append(got, fmt.Sprintf("%s %s %v", m[1], m[2], labels))
	}
	slices.Sort(got)
	known := series(t, true)
	for _, name := range metricName.FindAllString(string(text), -1) { // of examples too
		if _, ok := known[name]; !ok && !slices.Contains(tel.Described(), name) && name != "go_version" && !strings.HasSuffix(name, "_") { // that is a label
			t.Errorf("the document names %s, which is not there", name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("exposed (-) and documented (+):\n%s", diff)
	}
}
