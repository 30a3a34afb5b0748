package conformance_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"text/tabwriter"

	"bobbin/tests/process"
)

var update = flag.Bool("update", false, "write the tables of clients into docs/CLIENTS.md and README.md")

// The pages with the tables, and the lines around them.
const (
	clientsPage = "../../docs/CLIENTS.md"
	readmePage  = "../../README.md"
	tableBegin  = "<!-- written by go test ./tests/conformance -update, with BOBBIN_TEST_LONG=1 -->\n"
	tableEnd    = "<!-- end -->\n"
)

// People use a Bobbin with the client packages that they have. The tables of the documentation are
// those of the run; of clients that the short form does not run they say that all is well.
func TestShowDialects(t *testing.T) {
	t.Parallel()
	process.FindNodeClients(t)
	results := runScenarios(t)
	logTable(t, results.rows(clientKinds()))
	checkTable(t, clientsPage, results.rows(allClientKinds()))
	checkTable(t, readmePage, results.areas(allClientKinds()))
}

// checkTable compares the table of the page with the rows, or writes it.
func checkTable(t *testing.T, path string, rows [][]string) {
	t.Helper()
	want := "\n" + markdown(rows) + "\n"
	page, err := os.ReadFile(path)
	must(t, err)
	before, rest, found := bytes.Cut(page, []byte(tableBegin))
	got, after, ends := bytes.Cut(rest, []byte(tableEnd))
	switch {
	case !found || !ends:
		t.Fatalf("%s has no place for the table", path)
	case *update:
		must(t, os.WriteFile(path, bytes.Join([][]byte{before, []byte(tableBegin + want + tableEnd), after}, nil), 0o600))
	case string(got) != want:
		t.Errorf("%s has the table\n%s\nthe run is\n%s", path, got, want)
	}
}

// areas returns the table of clients and areas of the API: how many scenarios passed.
func (r *results) areas(kinds []clientKind) [][]string {
	rows := [][]string{{"tested with"}, {"chat completions"}, {"responses and conversations"}, {"tools of the client"}, {"embeddings, models"}}
	for _, kind := range kinds {
		rows[0] = append(rows[0], kind.name)
		var passed, all [5]int
		for _, s := range scenarios() {
			area := areaOf(s.name)
			switch r.cell(kind, s) {
			case "✓":
				passed[area]++
				all[area]++
			case "fails":
				all[area]++
			}
		}
		for area := 1; area < len(rows); area++ {
			cell := "–"
			if all[area] > 0 {
				cell = fmt.Sprintf("%d of %d", passed[area], all[area])
			}
			rows[area] = append(rows[area], cell)
		}
	}
	return rows
}

// areaOf returns the row of a scenario in the table of areas.
func areaOf(scenario string) int {
	switch {
	case strings.Contains(scenario, "client tool") || scenario == "tool choice":
		return 3
	case strings.HasPrefix(scenario, "responses") || strings.HasPrefix(scenario, "conversations"):
		return 2
	case scenario == "embeddings" || scenario == "models":
		return 4
	default:
		return 1
	}
}

// rows returns the table of clients and scenarios.
func (r *results) rows(kinds []clientKind) [][]string {
	rows := [][]string{{"what"}}
	for _, kind := range kinds {
		rows[0] = append(rows[0], kind.name)
	}
	for _, s := range scenarios() {
		row := []string{s.name}
		for _, kind := range kinds {
			row = append(row, r.cell(kind, s))
		}
		rows = append(rows, row)
	}
	return rows
}

// cell returns what the table says of a scenario with a client.
func (r *results) cell(kind clientKind, s scenario) string {
	passed, run := r.passed[kind.name+"/"+s.name]
	switch {
	case !s.fits(kind):
		return "–"
	case run && !passed:
		return "fails"
	default:
		return "✓"
	}
}

// logTable prints the rows as a table.
func logTable(t *testing.T, rows [][]string) {
	t.Helper()
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // a strings.Builder takes everything
	t.Logf("\n%s", b.String())
}

// markdown returns the rows as a table of Markdown.
func markdown(rows [][]string) string {
	var b strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return b.String()
}
