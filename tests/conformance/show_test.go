package conformance_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"text/tabwriter"

	"bobbin/tests/must"
	"bobbin/tests/process"
)

var update = flag.Bool("update", false, "write the table of clients into docs/CLIENTS.md")

// The page with the table, and the lines around it.
const (
	clientsPage = "../../docs/CLIENTS.md"
	tableBegin  = "<!-- written by go test ./tests/conformance -update, with BOBBIN_TEST_LONG=1 -->\n"
	tableEnd    = "<!-- end -->\n"
)

// People use a Bobbin with the client packages that they have. The table of the documentation is
// that of the run; of clients that the short form does not run it says that all is well.
func TestShowDialects(t *testing.T) {
	t.Parallel()
	process.FindNodeClients(t)
	results := runScenarios(t)
	logTable(t, results.rows(clientKinds()))
	rows := results.rows(allClientKinds())
	var b strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	want := "\n" + b.String() + "\n"
	page := must.Get(os.ReadFile(clientsPage))(t)
	before, rest, found := bytes.Cut(page, []byte(tableBegin))
	got, after, ends := bytes.Cut(rest, []byte(tableEnd))
	switch {
	case !found || !ends:
		t.Fatalf("%s has no place for the table", clientsPage)
	case *update:
		must.Do(t, os.WriteFile(clientsPage, bytes.Join([][]byte{before, []byte(tableBegin + want + tableEnd), after}, nil), 0o600))
	case string(got) != want:
		t.Errorf("%s has the table\n%s\nthe run is\n%s", clientsPage, got, want)
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
