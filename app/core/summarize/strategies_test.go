package summarize_test

import (
	"os"

	"strings"
	"testing"

	"bobbin/app/core/contextwindow"
	"bobbin/app/core/summarize"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// C3: every strategy of the table is what it is called, and makes summaries; the presets
// name none that is not there.
func TestKinds(t *testing.T) {
	t.Parallel()
	for _, kind := range summarize.Kinds() {
		material := summarize.Material{Count: counter{}}
		if kind.Model {
			material.Model = llmtest.Scripted(good)
		}
		strategy, name := kind.New(material), kind.Name
		if kind.Native { // the summary beside the provider's
			name = summarize.StrategyHybrid
		}
		req := request()
		res, err := summarize.New(strategy, counter{}).Summarize(t.Context(), req)
		if err != nil || strategy.Name() != name || res.Strategy != name || (res.Model != "") != kind.Model {
			t.Errorf("%s: got a summary by %q of model %q, %v", kind.Name, res.Strategy, res.Model, err)
		}
		wantSummary(t, req, res)
	}
	for _, name := range contextwindow.PresetNames() {
		p, err := contextwindow.Preset(name)
		if _, ok := summarize.KindOf(p.Strategy); err != nil || !ok {
			t.Errorf("%s: got the strategy %q, %v, want one that exists", name, p.Strategy, err)
		}
	}
	if _, ok := summarize.KindOf("magic"); ok {
		t.Error("got a strategy that is not there")
	}
}

// The code in docs/STRATEGIES.md is that of the example, which is compiled and run; and
// the strategies that it names are all that there are.
func TestStrategiesAreDocumented(t *testing.T) {
	t.Parallel()
	read := func(file string) string {
		raw := must.Get(os.ReadFile(file))(t)
		return string(raw)
	}
	doc, example := read("../../../docs/STRATEGIES.md"), read("example_test.go")
	_, code, _ := strings.Cut(example, "is in docs/STRATEGIES.md.\n\n")
	code, _, ok := strings.Cut(code, "\n// End of what is in docs")
	if !ok || !strings.Contains(doc, "```go\n"+code+"```\n") {
		t.Errorf("docs/STRATEGIES.md does not have the example's code:\n%s", code)
	}
	for _, kind := range summarize.Kinds() {
		if !strings.Contains(doc, "| `"+kind.Name+"` |") {
			t.Errorf("docs/STRATEGIES.md says nothing of %s", kind.Name)
		}
	}
}
