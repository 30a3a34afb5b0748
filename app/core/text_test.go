package core_test

import (
	"strings"
	"testing"

	"bobbin/app/core"
)

// What somebody agrees to is shown whole, with what cannot be seen.
func TestLiteral(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"to": "Ann", "é": "日本"}`:      `{"to": "Ann", "é": "日本"}`,
		"{\"a\":\n\t\"\u202eb\u200b\"}": `{"a":\n\t"\u202eb\u200b"}`,
		"\U000e0041\u00a0":              `\udb40\udc41\u00a0`,
		strings.Repeat("x", 100_000):    strings.Repeat("x", 100_000),
	} {
		if got := core.Literal(text); got != want {
			t.Errorf("got %.60q, want %.60q", got, want)
		}
	}
}
