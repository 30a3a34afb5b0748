package telemetry_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/telemetry"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// panel is what of a panel of a dashboard is looked at.
type panel struct {
	ID      int
	Type    string
	Title   string
	GridPos struct{ H, W, X, Y int }
	Targets []struct{ Expr, LegendFormat string }
}

// dashboard is docs/grafana/bobbin.json.
type dashboard struct {
	Title      string
	Panels     []panel
	Templating struct {
		List []struct {
			Name       string
			Definition string
		}
	}
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	raw := must.Get(os.ReadFile("../../docs/grafana/bobbin.json"))(t)
	var d dashboard
	must.Do(t, json.Unmarshal(raw, &d))
	return d
}

// What an expression of PromQL is made of, as far as names go.
var (
	metricName = regexp.MustCompile(`\b(?:bobbin|go|process)_[a-z0-9_]+\b`)
	matcher    = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"[^"]*"`)
	grouping   = regexp.MustCompile(`\bby\s*\(([^)]*)\)`)
	legendName = regexp.MustCompile(`\{\{([a-z_]+)\}\}`)
)

// scraped are the labels that Prometheus itself adds, and le that of buckets.
func scraped() []string { return []string{"job", "instance", "le"} }

// openLabels are those whose values are known only with an event: names of the configuration, routes,
// nodes, strategies, causes of fallbacks, what Slack sends. Such metrics appear with their first event.
func openLabels() []string {
	return []string{"model", "agent", "tool", "route", "node", "strategy", "cause", "type"}
}

// TestDashboard: every metric that the dashboard asks for is exposed, by a name that a
// scrape really has, with the labels that it is selected, grouped and named by;
// every metric of our own is on it, and those without open labels are exposed from the start.
func TestDashboard(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	labels, fresh := series(t, true), series(t, false)
	used := map[string]bool{}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			names := metricName.FindAllString(target.Expr, -1)
			compare.True(t, len(names) != 0 && strings.Count(target.Expr, "(") == strings.Count(target.Expr, ")"), "%s: %q asks for nothing, or is not whole", p.Title, target.Expr)
			for _, name := range names {
				used[family(name)] = true
				if _, ok := labels[name]; !ok {
					t.Errorf("%s: %s is not exposed", p.Title, name)
				}
				open := func(label string) bool { return slices.Contains(openLabels(), label) }
				if _, ok := fresh[name]; !ok && !slices.ContainsFunc(labels[name], open) {
					t.Errorf("%s: %s appears only with its first event, though its labels %q are known", p.Title, name, labels[name])
				}
			}
			checkLabels(t, p.Title, target.Expr, target.LegendFormat, labels)
		}
	}
	for _, v := range d.Templating.List {
		for _, name := range metricName.FindAllString(v.Definition, -1) {
			if _, ok := labels[name]; !ok {
				t.Errorf("variable %s: %s is not exposed", v.Name, name)
			}
		}
	}
	for _, r := range telemetry.Rows() {
		compare.True(t, used[r.Name] || r.Name == "bobbin_calibration_samples", "%s is on no panel", r.Name)
	}
}

// checkLabels checks the labels that an expression and its legend use.
func checkLabels(t *testing.T, title, expr, legend string, labels map[string][]string) {
	t.Helper()
	var all []string // of the metrics in the expression
	for _, name := range metricName.FindAllString(expr, -1) {
		all = append(all, labels[name]...)
	}
	all = append(all, scraped()...)
	used := slices.Concat(matcher.FindAllStringSubmatch(expr, -1), legendName.FindAllStringSubmatch(legend, -1))
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		for name := range strings.SplitSeq(g[1], ",") {
			used = append(used, []string{"", strings.TrimSpace(name)})
		}
	}
	for _, name := range used {
		compare.True(t, slices.Contains(all, name[1]), "%s: %q (%s) uses the label %s, which none of its metrics has", title, expr, legend, name[1])
	}
}

// family returns the name of the metric whose series has the name.
func family(name string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(name, suffix); ok {
			return base
		}
	}
	return name
}

// series returns the names that a scrape has, with their labels: of a new process, or after everything
// has happened.
func series(t *testing.T, happened bool) map[string][]string {
	t.Helper()
	o := options()
	o.Database = dbtest.SQLite(t).Pool()
	tel := telemetry.New(o)
	if happened {
		everything(t, tel)
	}
	out := map[string][]string{}
	for line := range strings.Lines(scrape(t, tel)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, rest, labeled := strings.Cut(line, "{")
		if !labeled {
			name, _, _ = strings.Cut(line, " ")
		}
		out[name] = []string{}
		if inside, _, ok := strings.Cut(rest, "}"); ok {
			for _, m := range matcher.FindAllStringSubmatch(inside, -1) {
				out[name] = append(out[name], m[1])
			}
		}
	}
	return out
}

// TestEverythingIsCounted: every metric of the table has a sentence of help, base units and labels that are
// bounded, and gets a series, with its labels, when its event happens once; none is there that nothing counts.
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
		unbounded := func(label string) bool {
			return strings.HasSuffix(label, "_id") || slices.Contains([]string{"session", "run", "user", "owner", "key", "path", "message"}, label)
		}
		if strings.Contains(name, "milli") || strings.Contains(name, "_ms") || !strings.HasSuffix(r.Help, ".") || slices.ContainsFunc(r.Labels, unbounded) {
			t.Errorf("%s: got the labels %q and the help %q", name, r.Labels, r.Help)
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
	diff := cmp.Diff(want, got)
	compare.True(t, diff == "", "the table (-) and what is documented (+):\n%s", diff)
}
