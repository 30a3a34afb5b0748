package story

import (
	"fmt"
	"slices"
	"strings"
)

// ticket is one thing that the coding agent repairs.
type ticket struct {
	ask      string
	pkg      string // folder
	file     string
	function string
	subject  string // what the package is about, in its comments
	was, is  string // the line that is wrong, and right
	command  string
	failure  string // what the test says
	answer   string
	topic    string // what it is about, as somebody remembers it
}

// coding is an agent at work on a Go service: files are read and written, tests fail
// and pass, and each turn is a loop of tool calls.
func coding() []byte {
	t := tell(23)
	t.system("You are a coding agent in the repository parcelrate, a Go service that computes shipping prices. Read before you write, run the tests after each change, and say in the end what you changed and why.")
	t.user("Hi, this is ⟦name|Noor|Who is giving you the tasks?⟧. We are on the branch ⟦fact|release/2.14|Which branch are we on?⟧ and I go through the list of bugs with you, one at a time. House rule: no new dependencies, and never touch ⟦path|internal/legacy/tariff_2019.go|Which file must never be touched?⟧, the auditors have a copy of it. Have a look around first.")
	t.uses("I will look at the layout and the tests first.",
		use{"run", map[string]any{"command": "⟦command|git log --oneline -8|How did you look at the latest commits?⟧"}, t.log()},
		use{"list_files", map[string]any{"path": "."}, layout()})
	t.uses("", use{"run", map[string]any{"command": "⟦command|go test ./... -count=1|How did you run all tests at the beginning?⟧"}, testRun("", "")})
	t.assistant("The tree builds and all tests are green on release/2.14. Three parts matter: `internal/rates` (zones and prices), `internal/quote` (what customers are shown), `internal/store` (PostgreSQL). I leave internal/legacy/tariff_2019.go alone. Which bug is first?")
	for i, k := range slices.Concat(tickets(), small()) {
		if i == len(tickets()) {
			t.hunt()
			t.user("Good day's work. It is Thursday now, and these are the small ones. The house rules of yesterday hold. Same way: one at a time.")
			t.assistant("Understood: one at a time, with a test each, no new dependencies, and the audited file stays as it is.")
		}
		t.ticket(i, k)
		if i%4 == 3 {
			t.review(i)
		}
	}
	t.user("That was the last one. Write me the summary for the release notes: which files did we touch, and which of the errors would a customer have seen?")
	t.assistant("Draft for 2.14:\n\n- Prices: zone borders, volumetric weight, surcharges and rounding agree with the tariff again.\n- Quotes: expired and duplicate quotes are refused with a clear message; currencies are never mixed.\n- Operations: the importer survives half a file, the cache has a limit, and shutdown waits for what is under way.\n\nCustomers saw the wrong surcharge, the quotes that would not expire, and the timeout at checkout. Everything else was caught inside. The list of files is in the commits; I can look up each one if you want them by ticket.")
	return t.out.Bytes()
}

// ticket works one off.
func (t *teller) ticket(n int, k ticket) {
	path := k.pkg + "/" + k.file
	t.user(k.ask)
	t.uses(one(t, []string{"Let me find where that happens.", "I will look for it.", "First where this lives.", ""}),
		use{"search", map[string]any{"query": k.function}, fmt.Sprintf("%s:%d: func %s(\n%s:%d: // %s is called by the handler\ninternal/http/routes.go:%d: %s",
			path, 31+n, k.function, path, 12+n, k.function, 40+3*n, strings.ToLower(k.function))})
	source := t.source(k, k.was)
	t.uses("", use{"read_file", map[string]any{"path": "⟦path|" + path + "|Which file did we change for " + k.topic + "?⟧"}, source},
		use{"read_file", map[string]any{"path": strings.TrimSuffix(path, ".go") + "_test.go"}, t.cases(k)})
	t.uses(one(t, []string{"That looks suspicious. I run the tests of the package before I change anything.", "Before I touch it: what do the tests say?", "I write the case down as a test, and run it."}),
		use{"run", map[string]any{"command": "⟦command|" + k.command + "|How do I run the tests for " + k.topic + "?⟧"}, testRun(k.pkg, "⟦error|"+k.failure+"|How did it fail before the repair of "+k.topic+"?⟧")})
	if t.IntN(3) == 0 {
		t.uses("I want to see who else calls it.", use{"run", map[string]any{"command": "grep -rn " + k.function + " --include=*.go ."}, t.callers(k)})
	}
	t.uses("Found it.", use{"edit_file", map[string]any{"path": path, "old": k.was, "new": k.is}, fmt.Sprintf("1 change in %s", path)})
	if t.IntN(3) == 0 {
		t.uses("", use{"run", map[string]any{"command": "go vet ./" + k.pkg + "/"}, "exit code 0"})
	}
	t.uses("", use{"run", map[string]any{"command": k.command}, testRun(k.pkg, "")})
	t.assistant(k.answer)
}

// hunt is one question that takes many steps: a commit is looked for by halving.
func (t *teller) hunt() {
	t.user("One thing before the evening: since some commit of this month the nightly import takes 40 minutes and not 9. Nobody knows which one. Find it, however long it takes; ⟦name|Odalys|Who waits to tell the carrier about the slow night?⟧ has promised the carrier an answer.")
	low, high := 0, 2_048
	bad := 1_307
	for low+1 < high {
		middle := (low + high) / 2
		took, verdict := t.between(520, 560), "good"
		if middle >= bad {
			took, verdict = t.between(2_380, 2_460), "bad"
		}
		t.uses(fmt.Sprintf("Between %d and %d commits back. I try the middle.", low, high),
			use{"run", map[string]any{"command": fmt.Sprintf("git checkout -q HEAD~%d && go test ./internal/importer/ -run TestNightly -v", 2_048-middle)},
				fmt.Sprintf("=== RUN   TestNightly\n%s    nightly_test.go:58: imported 1204331 rows in %ds\n--- PASS: TestNightly (%d.%02ds)\nPASS\nok  \tparcelrate/internal/importer\t%d.%03ds", t.progress(took), took, took, t.IntN(100), took, t.IntN(1000))},
			use{"run", map[string]any{"command": "git bisect " + verdict}, fmt.Sprintf("Bisecting: %d revisions left to test after this\n[%07x%05x] %s", (high-low)/2, t.Uint32()>>4, t.IntN(1<<20), one(t, []string{"importer: fewer allocations", "rates: holidays of next year", "store: connection pool by size", "build: newer linter", "quote: words of errors", "http: timeouts by route"}))})
		if middle >= bad {
			high = middle
		} else {
			low = middle
		}
	}
	t.uses("", use{"run", map[string]any{"command": "git show --stat ⟦fact|9c41e07d|Which commit made the nightly import slow?⟧"}, "commit 9c41e07d\nAuthor: build bot\n\n    store: connection pool by size\n\n internal/store/pool.go | 4 ++--\n 1 file changed, 2 insertions(+), 2 deletions(-)"},
		use{"read_file", map[string]any{"path": "⟦path|internal/store/pool.go|Where is the number of database connections set?⟧"}, "package store\n\n// poolSize is how many connections a process holds.\nfunc poolSize(cpus int) int {\n\treturn max(cpus/8, 1) // was cpus*4\n}\n"})
	t.assistant("It is 9c41e07d, \"store: connection pool by size\": the pool went from four connections a core to an eighth of one, so on the importer's machine everything waits for a single connection. Eleven steps of halving, each confirmed by the time of the test. I would set it back to cpus*4 and let the importer have a size of its own.")
}

// progress is what a long test prints.
func (t *teller) progress(took int) string {
	var b strings.Builder
	for percent := 5; percent <= 100; percent += 5 {
		fmt.Fprintf(&b, "    nightly_test.go:41: %3d %% after %4ds, %5d rows/s, %2d connections in use\n", percent, took*percent/100, 1_204_331/took+t.between(-30, 30), t.between(1, 2))
	}
	return b.String()
}

// review is a question between the tickets.
func (t *teller) review(n int) {
	t.user(one(t, []string{
		"Before we go on: is anything you changed today slower than before? Show me numbers, not a feeling.",
		"Short stop. Run the benchmarks of what you touched, please.",
		"I have a meeting in ten minutes. Are we faster or slower than this morning?",
	}))
	t.uses("", use{"run", map[string]any{"command": fmt.Sprintf("go test ./internal/... -run '^$' -bench . -benchmem -count=%d", 3+n%3)}, t.benchmarks()})
	t.assistant(one(t, []string{
		"Within the noise: no benchmark moved by more than three percent, and allocations are the same or fewer.",
		"The quote path is two allocations cheaper than this morning, the rest is the same within the noise.",
		"Nothing is slower. BenchmarkImport gained a little, because it no longer reads the header twice.",
	}))
}

// testRun is what go test prints; with a failure, of that package.
func testRun(pkg, failure string) string {
	var b strings.Builder
	for i, p := range []string{"internal/cache", "internal/http", "internal/importer", "internal/legacy", "internal/money", "internal/quote", "internal/rates", "internal/store", "internal/zones"} {
		if p == pkg && failure != "" {
			name := "Test" + strings.ToUpper(p[9:10]) + p[10:]
			fmt.Fprintf(&b, "--- FAIL: %s (0.%02ds)\n    %s\nFAIL\nFAIL\tparcelrate/%s\t0.%02ds\n", name, i+1, failure, p, 12+i)
			continue
		}
		fmt.Fprintf(&b, "ok  \tparcelrate/%s\t0.%02ds\n", p, 8+3*i)
	}
	if failure != "" {
		return b.String() + "FAIL\nexit code 1"
	}
	return b.String() + "exit code 0"
}

// layout is the tree of the repository.
func layout() string {
	return strings.Join([]string{
		".", "├── cmd/parcelrate/main.go", "├── internal/cache/lru.go", "├── internal/http/routes.go", "├── internal/importer/csv.go", "├── internal/legacy/tariff_2019.go",
		"├── internal/money/round.go", "├── internal/quote/expiry.go", "├── internal/quote/total.go", "├── internal/rates/surcharge.go", "├── internal/rates/volumetric.go",
		"├── internal/store/quotes.go", "├── internal/zones/border.go", "├── migrations/0031_quotes_expire.sql", "├── go.mod", "└── README.md",
	}, "\n")
}

// log is what git log prints.
func (t *teller) log() string {
	var b strings.Builder
	for _, line := range []string{"rates: tariff of October", "quote: totals in one place", "store: index on quotes(expires_at)", "http: limit request bodies", "zones: islands are zones of their own",
		"importer: read the carrier's file line by line", "money: whole cents everywhere", "build: go 1.24"} {
		fmt.Fprintf(&b, "%07x %s\n", t.Uint32()>>4, line)
	}
	return b.String()
}

// callers is what grep prints.
func (t *teller) callers(k ticket) string {
	var b strings.Builder
	for _, f := range some(t, []string{"internal/http/routes.go", "internal/http/quote_handler.go", "internal/importer/csv.go", "cmd/parcelrate/main.go", "internal/quote/total.go", "internal/rates/table_test.go", "internal/store/quotes_test.go"}, t.between(3, 6)) {
		fmt.Fprintf(&b, "./%s:%d:\t\t%s := %s(ctx, parcel, zone)\n", f, t.between(14, 220), one(t, []string{"price", "out", "got", "total", "next"}), k.function)
	}
	return b.String()
}

// benchmarks is what go test -bench prints.
func (t *teller) benchmarks() string {
	var b strings.Builder
	b.WriteString("goos: linux\ngoarch: amd64\ncpu: AMD EPYC 7B13\n")
	for _, name := range []string{"Surcharge", "Volumetric", "Total", "ZoneOf", "Import", "CacheGet", "CachePut", "QuoteInsert", "RoundCents"} {
		for range 4 {
			fmt.Fprintf(&b, "Benchmark%s-8 \t%8d\t%8.1f ns/op\t%6d B/op\t%4d allocs/op\n", name, t.between(12_000, 4_800_000), float64(t.between(210, 98_000))/10, t.between(0, 64)*16, t.between(0, 12))
		}
	}
	return b.String() + "PASS\nexit code 0"
}
