package prompttext

// Inside the package: these are algorithms with laws of their own.

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

// quarter counts a token for every four bytes, uneven one for every byte that is
// not a letter and for every run of letters, so that pieces and whole differ.
type quarter struct{}

func (quarter) Text(s string) int { return (len(s) + 3) / 4 }

type uneven struct{}

func (uneven) Text(s string) int {
	n, in := 0, false
	for i := range len(s) {
		letter := s[i] >= 'a' && s[i] <= 'z'
		if !letter || !in {
			n++
		}
		in = letter
	}
	return n
}

// Cutting yields valid UTF-8 within the limit, something if there was something,
// and leaves alone what fits.
func TestCutLaws(t *testing.T) {
	t.Parallel()
	cuts := map[string]func(core.TextCounter, string, int) string{"head": Head, "middle": Middle, "oldest": Oldest}
	seed.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.StringN(0, 3_000, -1),
			rapid.Map(rapid.SliceOf(rapid.SampledFrom([]string{"## Goal\n", "# x\n", "**Bold**\n", "- entry one\n", "A sentence. ", "Really?! ", "長い文。", "word ", "\n", strings.Repeat("x", 90)})), func(s []string) string { return strings.Join(s, "") }),
		).Draw(t, "text")
		limit := rapid.IntRange(0, 400).Draw(t, "limit")
		count := rapid.SampledFrom([]core.TextCounter{quarter{}, uneven{}}).Draw(t, "counter")
		for name, cut := range cuts {
			got := cut(count, text, limit)
			if n := count.Text(got); n > limit {
				t.Fatalf("%s: got %d tokens, want at most %d", name, n, limit)
			}
			must.True(t, utf8.ValidString(got), "%s: got %q, want valid UTF-8", name, got)
			must.True(t, got != "" || strings.TrimSpace(text) == "" || limit < MinTokens, "%s: nothing is left of %q with limit %d", name, text, limit)
			must.True(t, count.Text(text) > limit || strings.TrimSpace(got) == strings.TrimSpace(text), "%s: got %q, want %q as it fits", name, got, text)
		}
		if most := limit + 60; utf8.RuneCountInString(Characters(text, most)) > most {
			t.Fatalf("characters: got %q, want at most %d", Characters(text, most), most)
		}
		line := Line(text, limit+MinTokens)
		if len(line) > limit+MinTokens || strings.Contains(line, "\n") || Line(line, limit+MinTokens) != line {
			t.Fatalf("line: got %q, want one line of at most %d bytes that stays as it is", line, limit+MinTokens)
		}
	})
}

func TestCutOldest(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		limit      int
		want       string
	}{
		{"fits", "  A. B.\n", 10, "A. B."},
		{"Sentences", "The first is old. The second is newer. The third is new.", 13, "… The second is newer. The third is new."},
		{"no blanks between", "一二三四。五六七八。九十。", 8, "… 九十。"},
		{"entries stay whole", "## F\n- one. two. three.\n- four\n- five", 9, "## F\n…\n- four\n- five"},
		{"short sections stay", "## Goal\nShip.\n\n## Facts\nOld fact here. Old fact two. Old fact three. New fact.", 19, "## Goal\nShip.\n\n## Facts\n… New fact."},
		{"one long sentence", "## Goal\n" + strings.Repeat("word ", 100), 18, "## Goal\n… word word word word word word word word word…"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			compare.Equal(t, "Oldest(quarter{}, tt.text, tt.limit)", tt.want, Oldest(quarter{}, tt.text, tt.limit))
		})
	}
}

// One long unit is shortened, not dropped, while the rest is far below the limit.
func TestOldestShortensALongUnit(t *testing.T) {
	t.Parallel()
	var items []string
	for i := range 600 {
		items = append(items, fmt.Sprintf("item%d", i))
	}
	long := strings.Join(items, ", ")
	for _, text := range []string{
		"Facts: " + long + ". Nothing is open.",
		"## Facts\n- " + long + "\n\n## Open\n- nothing",
		"- " + long + "\n- nothing is open",
	} {
		got := Oldest(quarter{}, text, 54)
		n := quarter{}.Text(got)
		compare.True(t, n <= 54 && n >= 36 && strings.Contains(got, "item0, item1") && strings.Contains(got, "othing"), "got %d tokens: %q", n, got)
	}
}
