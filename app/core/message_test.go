package core_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/searchtext"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// What of a run's prompts came from the provider's cache is told as a share
// of all of the prompt; the numbers come back as they were.
func TestUsageJSON(t *testing.T) {
	t.Parallel()
	for want, u := range map[string]core.Usage{
		`{"input_tokens":0,"output_tokens":0}`:                                                  {},
		`{"input_tokens":90,"output_tokens":7}`:                                                 {InputTokens: 90, OutputTokens: 7},
		`{"input_tokens":3000,"output_tokens":7,"cache_read_tokens":2000,"cache_share":0.6667}`: {InputTokens: 3000, OutputTokens: 7, CacheReadTokens: 2000},
		`{"input_tokens":10,"output_tokens":0,"cache_read_tokens":10,"cache_share":1}`:          {InputTokens: 10, CacheReadTokens: 10},
		`{"input_tokens":10,"output_tokens":0,"cache_write_tokens":10}`:                         {InputTokens: 10, CacheWriteTokens: 10},
	} {
		raw, err := json.Marshal(u)
		compare.True(t, err == nil && string(raw) == want, "got %s, %v, want %s", raw, err, want)
		var back core.Usage
		if err := json.Unmarshal(raw, &back); err != nil || back != u {
			t.Errorf("%s: got %+v back, %v, want %+v", raw, back, err, u)
		}
	}
}

// Numbers that cannot be true are corrected or left out; a share is at most all.
func TestUsageCorrected(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reported, want core.Usage
		share          float64
	}{
		{core.Usage{InputTokens: 100, OutputTokens: 20, ReasoningTokens: 5, CacheReadTokens: 80}, core.Usage{InputTokens: 100, OutputTokens: 20, ReasoningTokens: 5, CacheReadTokens: 80}, 0.8},
		{core.Usage{InputTokens: 150, CacheReadTokens: 850}, core.Usage{InputTokens: 1000, CacheReadTokens: 850}, 0.85},
		{core.Usage{InputTokens: 10, CacheReadTokens: 50, CacheWriteTokens: 40}, core.Usage{InputTokens: 100, CacheReadTokens: 50, CacheWriteTokens: 40}, 0.5},
		{core.Usage{InputTokens: 10, OutputTokens: 5, ReasoningTokens: 500}, core.Usage{InputTokens: 10, OutputTokens: 505, ReasoningTokens: 500}, 0},
		{core.Usage{InputTokens: -1, OutputTokens: 1 << 40, CacheReadTokens: -7}, core.Usage{}, 0},
	} {
		if got := c.reported.Corrected(); got != c.want || got.CacheShare() != c.share {
			t.Errorf("%+v: got %+v, share %g, want %+v, %g", c.reported, got, got.CacheShare(), c.want, c.share)
		}
	}
}

// A quotation of a message is found in its text, and is the same when it is quoted again.
func TestRecalledPassage(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("The canoe\n\tis from Turku. \x01", 40)
	beginning, _ := searchtext.Excerpt(long, nil, 100)
	end := long[len(long)-10:]
	ending, _ := searchtext.Excerpt(long, []searchtext.Span{{Start: len(long) - 8, End: len(long) - 3}}, 60)
	for name, tt := range map[string]struct {
		content, quotation string
		want               bool
	}{
		"whole":               {"The canoe\nis  from Turku.", "The canoe is from Turku.", true},
		"beginning":           {long, beginning, true},
		"end":                 {long, ending, true},
		"cut without a mark":  {long, strings.TrimSuffix(beginning, "…")[:20], true},
		"a mark of its own":   {"… and so on …", "… and so on …", true},
		"of another message":  {"The canoe", "The boat", false},
		"empty":               {"The canoe", "", false},
		"only marks":          {"The canoe", "……", false},
		"of an attached file": {end, "chapter one", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := core.Message{ID: "m", Content: tt.content}
			p, found := core.FindPassage(m, tt.quotation)
			must.True(t, found == tt.want, "got %+v, %t, want found %t", p, found, tt.want)
			if !found {
				return
			}
			if got, ok := p.Quote(m); !ok || got != tt.quotation {
				t.Errorf("got %q, %t, want %q", got, ok, tt.quotation)
			}
			if got, ok := p.Quote(core.Message{}); ok {
				t.Errorf("got %q of a message without text, want none", got)
			}
		})
	}
}

// The pieces of an excerpt are the excerpt, in any script.
func TestPieces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		excerpt    string
		highlights []core.Highlight
		want       []core.Piece
	}{
		{"", nil, []core.Piece{}},
		{"no match", nil, []core.Piece{{Text: "no match"}}},
		{"👋🏽 Grüße, 世界!", []core.Highlight{{Start: 9, End: 16}, {Start: 18, End: 24}}, []core.Piece{
			{Text: "👋🏽 "}, {Text: "Grüße", Match: true}, {Text: ", "}, {Text: "世界", Match: true}, {Text: "!"},
		}},
		{"aa", []core.Highlight{{Start: 0, End: 1}, {Start: 1, End: 2}}, []core.Piece{{Text: "a", Match: true}, {Text: "a", Match: true}}},
	} {
		compare.Equal(t, fmt.Sprintf("%q", c.excerpt), c.want, core.Pieces(c.excerpt, c.highlights))
	}
}

// Turns go by the mark of the user's message: none (u), a filter's (f), a refusal's (r). Others are answers (a), steps (c)
// and the system's (s).
func TestWithoutRefused(t *testing.T) {
	t.Parallel()
	roles := map[rune]core.Role{'u': core.RoleUser, 'f': core.RoleUser, 'r': core.RoleUser, 'a': core.RoleAssistant, 'c': core.RoleTool, 's': core.RoleSystem}
	marks := map[rune]core.FinishReason{'f': core.FinishContentFilter, 'r': core.FinishRefused}
	for log, want := range map[string]string{ // without a filter's; without all
		"uaua": "uaua uaua", "ufua": "usua usua", "uarua": "uarua uasua", "uacraua": "uacraua uacssua", "fasrf": "fasrs sssss", "fua": "sua sua", "ufsua": "ussua ussua", "aru": "aru asu",
	} {
		var messages []core.Message
		for _, kind := range log {
			messages = append(messages, core.Message{Role: roles[kind], FinishReason: marks[kind]})
		}
		got := []byte(log + " " + log)
		for i, m := range slices.Concat(core.WithoutRefused(messages, core.FinishContentFilter), messages[:1], core.WithoutRefused(messages, core.FinishContentFilter, core.FinishRefused)) {
			if m.Role == core.RoleSystem && i != len(log) {
				got[i] = 's'
			}
		}
		compare.Equal(t, log, want, string(got))
	}
}
