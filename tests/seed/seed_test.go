package seed_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"bobbin/tests/seed"
)

// TestProgram is what the other tests run in a process of its own: it draws, and fails.
func TestProgram(t *testing.T) {
	if os.Getenv("SEED_TEST_PROGRAM") == "" {
		t.Skip("runs inside of TestSeeds")
	}
	r := seed.Rand(t, 7)
	t.Logf("drawn: %d %d, fixed: %d", r.IntN(1_000_000), seed.Rand(t, 8).IntN(1_000_000), seed.Fixed(1, 2).IntN(1_000_000))
	cases := 0
	t.Run("property", func(t *testing.T) {
		seed.Check(t, func(rt *rapid.T) {
			if cases++; rapid.IntRange(0, 3).Draw(rt, "n") > 3 {
				rt.Fatal("more than 3")
			}
		})
	})
	t.Logf("%d cases", cases)
	t.Run("in CI", func(t *testing.T) { seed.SkipInCI(t) })
	t.Fatal("failed on purpose")
}

// program runs TestProgram with a seed and returns what it printed; without BOBBIN_TEST_SEED
// if the seed is empty.
func program(t *testing.T, value string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProgram$", "-test.v")
	cmd.Env = append(os.Environ(), "SEED_TEST_PROGRAM=1", "BOBBIN_TEST_SEED="+value)
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatalf("the program passed:\n%s", out)
	}
	return string(out)
}

// drawn returns the line with the numbers that were drawn.
func drawn(t *testing.T, out string) string {
	t.Helper()
	for line := range strings.Lines(out) {
		if _, numbers, ok := strings.Cut(line, "drawn: "); ok {
			return numbers
		}
	}
	t.Fatalf("nothing was drawn:\n%s", out)
	return ""
}

// fixed returns the number that no seed changes.
func fixed(line string) string {
	_, number, _ := strings.Cut(line, "fixed: ")
	return number
}

func TestSeeds(t *testing.T) {
	t.Parallel()
	usual, again, other := program(t, ""), program(t, "1"), program(t, "42")
	if a, b := drawn(t, usual), drawn(t, again); a != b {
		t.Errorf("got %q and %q, want the same numbers without a seed and with 1", a, b)
	}
	if a, b := drawn(t, usual), drawn(t, other); a == b || fixed(a) != fixed(b) {
		t.Errorf("got %q and %q, want other numbers with another seed, and the same fixed ones", a, b)
	}
	for _, tt := range []struct{ out, want string }{
		{usual, "repeat with: BOBBIN_TEST_SEED=1 scripts/test -run '^TestProgram$' ./tests/seed"},
		{usual, " 30 cases"},
		{usual, "--- SKIP: TestProgram/in_CI"},
		{other, "repeat with: BOBBIN_TEST_SEED=42 scripts/test -run '^TestProgram$' ./tests/seed"},
		{other, " 100 cases"},
		{other, "--- PASS: TestProgram/in_CI"},
	} {
		if !strings.Contains(tt.out, tt.want) {
			t.Errorf("got %s\nwant %q in it", tt.out, tt.want)
		}
	}
}

// A seed that is none ends the program with one line.
func TestSeedThatIsNone(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"x", "0", "-1", "1.5", "1000000000000000000"} {
		out := program(t, value)
		if !strings.HasPrefix(out, "BOBBIN_TEST_SEED is "+`"`+value+`"`) || strings.Count(out, "\n") != 1 {
			t.Errorf("got %q, want one line about the seed %q", out, value)
		}
	}
}
