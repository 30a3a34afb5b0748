package eval_test

import (
	"flag"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// refresh is the command that writes the golden files anew.
const refresh = "go test ./tests/eval -update"

// golden compares with a stored file, as near does.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil { //nolint:gosec // part of the source
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; make it with: %s", err, refresh)
	}
	if near(string(want), string(got)) {
		return
	}
	diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n"))
	if len(diff) > 4000 {
		diff = diff[:4000] + "…"
	}
	t.Errorf("%s is stale: if the change is wanted, write it anew with: %s\n(-want +got):\n%s", file, refresh, diff)
}

// How far numbers may be from the stored ones: another sentence in a prompt, or a
// tool described in other words, makes no table stale.
const (
	nearShare = 0.05
	nearSteps = 2 // for small numbers
)

var (
	numbers = regexp.MustCompile(`\d[\d,]*(?:\.\d+)?`)
	blanks  = regexp.MustCompile(` +`)
)

// near reports whether two texts differ in nothing but a little in their numbers.
// Columns move with the digits in them, so that runs of blanks are alike.
func near(want, got string) bool {
	if want == got {
		return true
	}
	words := func(s string) string { return blanks.ReplaceAllString(numbers.ReplaceAllString(s, "0"), " ") }
	if words(want) != words(got) {
		return false
	}
	wants, gots := numbers.FindAllString(want, -1), numbers.FindAllString(got, -1)
	for i := range wants {
		a, errA := strconv.ParseFloat(strings.ReplaceAll(wants[i], ",", ""), 64)
		b, errB := strconv.ParseFloat(strings.ReplaceAll(gots[i], ",", ""), 64)
		if errA != nil || errB != nil || math.Abs(a-b) > math.Max(nearSteps, nearShare*math.Abs(a)) {
			return false
		}
	}
	return true
}
