package garbage_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"bobbin/app/core/llm"
	"bobbin/app/core/summarize"
	"bobbin/app/core/tokens"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// policy is how a preset asks for summaries.
type policy struct {
	name          string
	hybrid        bool
	limit, askFor int
}

func policies() []policy {
	return []policy{
		{summarize.PresetWindow, true, 1_200, 0}, {summarize.PresetBudget, false, 1_000, 670}, {summarize.PresetSliding, false, 500, 300},
	}
}

// gate asks for summaries of fixtures.
type gate struct {
	t     *testing.T
	count *tokens.Counter
	all   bool // bad answers are given, not one of each kind
}

// ask has the fixture summarized under the policy by a model that gives the answer to every
// request, and returns the result. Previous is the summary that is extended.
func (g gate) ask(f fixture, p policy, a answer, previous string) summarize.Result {
	g.t.Helper()
	model := llmtest.Scripted(a.step()).WithInfo(llm.Info{Name: "m", Provider: "p", Window: 128_000, MaxOutput: 8_000})
	var strategy summarize.Strategy = summarize.NewLLM(model, g.count, nil)
	if p.hybrid {
		strategy = summarize.NewHybrid(summarize.NewLLM(model, g.count, nil))
	}
	res, err := summarize.New(strategy, g.count).Summarize(g.t.Context(), summarize.Request{
		Preset: p.name, Messages: f.messages, Previous: previous, Limit: p.limit, TargetTokens: p.askFor,
	})
	if err != nil {
		g.t.Fatalf("%s, %s: %v", f.name, a.kind, err)
	}
	return res
}

// figure counts answers.
type figure struct{ asked, stored int }

// share is the part of the answers that was stored, in percent.
func (f figure) share() float64 { return 100 * float64(f.stored) / float64(max(f.asked, 1)) }

// Nearly no bad answer becomes the memory of a conversation, and nearly no good one is
// refused: as the first summary and as an extension of one. With BOBBIN_TEST_LONG=1 all
// answers are given under all policies, else a bad one of each kind and all good ones
// under one policy.
func TestShowGarbage(t *testing.T) {
	count := tokens.NewCounter()
	g := gate{t, count, os.Getenv("BOBBIN_TEST_LONG") != ""}
	sets := policies()
	if !g.all {
		sets = sets[:1]
	}
	tuned, heldOut := load(t, ""), load(t, ".heldout")
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)
	passed, refused := map[string]int{}, map[string]int{}
	fmt.Fprintln(table, "policy\tbad first\tstored\tbad extending\tstored\tgood tuned\trefused\tgood held out\trefused\t")
	for _, p := range sets {
		first, extending := g.bad(p, append(tuned, heldOut...), passed)
		good, unseen := g.good(p, tuned, refused), g.good(p, heldOut, refused)
		fmt.Fprintf(table, "%s\t%d\t%.1f %%\t%d\t%.1f %%\t%d\t%.1f %%\t%d\t%.1f %%\t\n", p.name, first.asked, first.share(), extending.asked, extending.share(),
			good.asked, 100-good.share(), unseen.asked, 100-unseen.share())
		bad, both := figure{first.asked + extending.asked, first.stored + extending.stored}, figure{good.asked + unseen.asked, good.stored + unseen.stored}
		if bad.share() > 2 || both.share() < 98 {
			t.Errorf("%s: %.1f %% of the bad answers are stored, want at most 2; %.1f %% of the good ones, want at least 98", p.name, bad.share(), both.share())
		}
	}
	must.Do(t, table.Flush())
	t.Logf("answers to the request for a summary\n%s\nbad answers that were stored: %s\ngood answers that were refused: %s", &out, list(passed), list(refused))
}

// question is a request for a summary and its answer.
type question struct {
	fixture fixture
	answer
}

// badAnswers returns bad answers by kind: those that list returns for each fixture and
// another one in the same language.
func badAnswers(fixtures []fixture, list func(f, other fixture) []answer) map[string][]question {
	half := len(fixtures) / 2
	kinds := map[string][]question{}
	for i, f := range fixtures {
		for _, a := range list(f, fixtures[(i+half)%len(fixtures)]) {
			kinds[a.kind] = append(kinds[a.kind], question{f, a})
		}
	}
	return kinds
}

// sample returns all of the questions, or one of each kind.
func (g gate) sample(kinds map[string][]question) []question {
	var all []question
	for kind, list := range kinds {
		if !g.all {
			n := len(kind) % len(list) // another language for each kind
			list = list[n : n+1]
		}
		all = append(all, list...)
	}
	return all
}

// bad counts the bad answers that are stored as they are.
func (g gate) bad(p policy, fixtures []fixture, passed map[string]int) (first, extending figure) {
	for _, q := range g.sample(badAnswers(fixtures, everyBad)) {
		first.addBad(g.ask(q.fixture, p, q.answer, ""), q.fixture.name+" "+q.kind, passed)
		extending.addBad(g.extend(q.fixture, p, q.answer), q.fixture.name+" extending: "+q.kind, passed)
	}
	for _, q := range g.sample(badAnswers(fixtures, everyExtending)) {
		extending.addBad(g.extend(q.fixture, p, q.answer), q.fixture.name+" extending: "+q.kind, passed)
	}
	return first, extending
}

// addBad counts the result of a bad answer. Passed gets the name of one that was stored.
func (f *figure) addBad(res summarize.Result, name string, passed map[string]int) {
	f.asked++
	if res.Note == "" {
		f.stored++
		passed[name]++
	}
}

// extend asks for a summary of the second half of the fixture that extends the one of the
// first half.
func (g gate) extend(f fixture, p policy, a answer) summarize.Result {
	half := f
	half.messages = f.messages[len(f.messages)/2:]
	return g.ask(half, p, a, f.earlier)
}

// good counts the good answers that are stored, as the first summary and as an extension.
func (g gate) good(p policy, fixtures []fixture, refused map[string]int) figure {
	var f figure
	for _, fixture := range fixtures {
		for _, a := range fixture.good {
			f.addGood(g.ask(fixture, p, a, ""), fixture.name+" "+a.kind, refused)
			f.addGood(g.extend(fixture, p, a), fixture.name+" extending: "+a.kind, refused)
		}
	}
	return f
}

// addGood counts the result of a good answer. Refused gets the name of one that was not
// stored.
func (f *figure) addGood(res summarize.Result, name string, refused map[string]int) {
	f.asked++
	if res.Note == "" {
		f.stored++
		return
	}
	refused[name+" ("+res.Cause+")"]++
}

// list returns the counted names, the most frequent first.
func list(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
	for i, name := range names {
		names[i] = fmt.Sprintf("\n  %d × %s", counts[name], name)
	}
	return cmp.Or(strings.Join(names, ""), "none")
}
