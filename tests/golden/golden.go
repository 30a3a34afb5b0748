// Package golden compares what a test got with a file that is kept.
package golden

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// Update is the flag -update.
var Update = flag.Bool("update", false, "write the golden files anew") //nolint:gochecknoglobals // a flag

// Check compares got with a file, which may differ as alike says. With the flag -update it writes the file first.
func Check(t testing.TB, file, got string, alike ...func(want, got string) bool) {
	t.Helper()
	if *Update {
		must.Do(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want := string(must.Get(os.ReadFile(file))(t))
	if !slices.ContainsFunc(alike, func(are func(want, got string) bool) bool { return are(want, got) }) {
		compare.Equal(t, file+"; if that is wanted, write it anew with -update", want, got)
	}
}

// Cases compares what becomes of each case of a file with what is kept there. A case is its name in a
// line that begins with "# ", the lines of its input, and in lines that begin with "=> " what becomes of it.
func Cases(t testing.TB, file string, output func(name, input string) string) {
	t.Helper()
	text := string(must.Get(os.ReadFile(file))(t))
	var got strings.Builder
	for c := range strings.SplitSeq(strings.TrimPrefix(text, "# "), "\n\n# ") {
		name, input, _ := strings.Cut(c, "\n")
		input, _, _ = strings.Cut(input, "=> ")
		out := strings.ReplaceAll(output(name, input), "\n", "\n=> ")
		fmt.Fprintf(&got, "# %s\n%s=> %s\n\n", name, input, out)
	}
	Check(t, file, strings.TrimSuffix(got.String(), "\n"))
}
