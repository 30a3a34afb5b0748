package core_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"bobbin/app/core"
)

// Data in a tool's text is described in prompts, and the log keeps it. Keys, hashes, long words and
// numbers are text.
func TestDataInResults(t *testing.T) {
	t.Parallel()
	var bytes []byte
	for sum := sha256.Sum256(nil); len(bytes) < 150_000; sum = sha256.Sum256(sum[:]) {
		bytes = append(bytes, sum[:]...)
	}
	bytes = bytes[:150_000]
	data := base64.StdEncoding.EncodeToString(bytes)
	var lines strings.Builder
	for i := 0; i < len(data); i += 76 {
		lines.WriteString(data[i:min(i+76, len(data))] + "\n")
	}
	lastLine := "\n" + data[len(data)-len(data)%76:]
	hashes := strings.Repeat(hex.EncodeToString(bytes[:32])+"\n", 100)
	key := base64.StdEncoding.EncodeToString(bytes[:700])
	for name, c := range map[string]struct{ content, want string }{
		"data URL":           {`{"ok": true, "shot": "data:image/png;base64,` + data + `", "note": "x"}`, `{"ok": true, "shot": "[image/png, 150 KB]", "note": "x"}`},
		"escaped":            {`{"shot":"data:image\/png;charset=x;base64,` + strings.ReplaceAll(data, "/", `\/`) + `"}`, `{"shot":"[image/png, 152 KB]"}`},
		"two":                {"a " + data + " b data:;base64," + data[:400] + " c", "a [base64, 150 KB] b [data, 300 bytes] c"},
		"URL safe":           {base64.RawURLEncoding.EncodeToString(bytes), "[base64, 150 KB]"},
		"lines":              {"begin\n\n" + lines.String() + "\nend", "begin\n\n[base64, 152 KB]" + lastLine + "\n\nend"},
		"lines, then a word": {lines.String() + "and so on", "[base64, 152 KB]" + lastLine + "\nand so on"},
		"lines in JSON":      {`{"a":"` + strings.ReplaceAll(lines.String(), "\n", `\r\n`) + `"}`, `{"a":"[base64, 158 KB]` + strings.ReplaceAll(lastLine, "\n", `\r\n`) + `\r\n"}`},
		"hex":                {"x=" + hex.EncodeToString(bytes) + ".", "x=[hex, 150 KB]."},
		"key":                {key, key},
		"small URL":          {"data:image/gif;base64,R0lGODlhAQABAAAAACw=", "data:image/gif;base64,R0lGODlhAQABAAAAACw="},
		"hashes":             {hashes, hashes},
		"letters":            {strings.Repeat("GATTACA", 1000), strings.Repeat("GATTACA", 1000)},
		"digits":             {strings.Repeat("3141592653", 1000), strings.Repeat("3141592653", 1000)},
		"lines of words":     {strings.Repeat("Word2 ", 1000), strings.Repeat("Word2 ", 1000)},
	} {
		m := core.WithExcerpt(core.Message{ID: "m1", Role: core.RoleTool, Content: c.content}, 64<<10)
		if got := m.Shown(true); m.Content != c.content || got != c.want {
			t.Errorf("%s: got %.200q, want %.200q", name, got, c.want)
		}
	}
	long := "data:image/png;base64," + data + strings.Repeat(" word", 1000)
	m := core.WithExcerpt(core.Message{ID: "m1", Role: core.RoleTool, Content: long}, 900)
	if got, want := m.Shown(true), `"offset": 0} reads on`; !strings.HasPrefix(got, "[image/png, 150 KB] word") || !strings.Contains(got, want) || len(got) > 1100 {
		t.Errorf("got %.1500q, want an excerpt with %s", got, want)
	}
}
