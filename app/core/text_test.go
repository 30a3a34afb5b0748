package core_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/tests/compare"
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
		compare.Equal(t, "core.Literal(text)", want, core.Literal(text))
	}
}

// A loop calls immediately, after its pause, or when it is woken, and ends with its context.
func TestRepeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		begin, wake, ended := time.Now(), make(chan struct{}), make(chan error)
		var calls []time.Duration
		go func() {
			ended <- core.Repeat(ctx, wake, func(context.Context) time.Duration {
				calls = append(calls, time.Since(begin))
				return time.Minute
			})
		}()
		time.Sleep(90 * time.Second)
		wake <- struct{}{}
		synctest.Wait()
		stop()
		if err := <-ended; err != nil || len(calls) != 3 || calls[0] != 0 || calls[1] != time.Minute || calls[2] != 90*time.Second {
			t.Errorf("got calls after %v, %v, want after 0, 60 and 90 s", calls, err)
		}
	})
}

// What takes a part of the interval does not delay the next call; what takes longer is called again
// immediately.
func TestEvery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 200*time.Second)
		defer stop()
		begin := time.Now()
		var calls []time.Duration
		err := core.Every(ctx, time.Minute, func(context.Context) {
			if calls = append(calls, time.Since(begin)); len(calls) == 2 {
				time.Sleep(90 * time.Second)
			}
			time.Sleep(time.Second)
		})
		if err != nil || len(calls) != 3 || calls[1] != time.Minute || calls[2] != 151*time.Second {
			t.Errorf("got calls after %v, %v, want after 0, 60 and 151 s", calls, err)
		}
	})
}

// A large tool result is kept whole, and prompts show its beginning, its end, and where the rest is.
func TestExcerpt(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("head ", 100) + strings.Repeat("tail ", 100)
	m := core.WithExcerpt(core.Message{ID: "m1", Role: core.RoleTool, Content: content}, 90)
	if m.Content != content || string(m.Metadata) != `{"excerpt":{"head":60,"tail":30}}` {
		t.Fatalf("got %d bytes with metadata %s, want all of them", len(m.Content), m.Metadata)
	}
	want := strings.Repeat("head ", 12) + "\n[… 910 of 1000 bytes are left out here; the whole result is message m1 …]\n" + strings.Repeat("tail ", 6)
	compare.Equal(t, "m.Shown(false)", want, m.Shown(false))
	compare.Contains(t, "m.Shown(true): want how to read on", `message m1; read_result {"message_id": "m1", "offset": 60} reads on …]`, m.Shown(true))
	for _, limit := range []int{0, 1000, 2000} {
		if m := core.WithExcerpt(core.Message{Role: core.RoleTool, Content: content}, limit); m.Metadata != nil || m.Shown(true) != content {
			t.Errorf("limit %d: got metadata %s, want the whole", limit, m.Metadata)
		}
	}
}

// Metadata that came from elsewhere, or that fits another text, show all of it.
func TestExcerptsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{}`, `null`, `5`, `{"excerpt":null}`, `{"excerpt":7}`, `{"excerpt":{"head":-1,"tail":1}}`, `{"excerpt":{"head":1,"tail":-1}}`,
		`{"excerpt":{"head":9,"tail":0}}`, `{"excerpt":{"head":4,"tail":4}}`, `{"excerpt":{"head":0,"tail":9}}`, `{"excerpt":{"head":1,"tail":0}}`,
		`{"excerpt":{"head":0,"tail":1}}`, `{"excerpt":{"head":9223372036854775807,"tail":9223372036854775807}}`,
	} {
		m := core.Message{Role: core.RoleTool, Content: "üüüü", Metadata: json.RawMessage(raw)}
		compare.Equal(t, raw+": want all", m.Content, m.Shown(true))
	}
	user := core.Message{Role: core.RoleUser, Content: "a long message", Metadata: json.RawMessage(`{"excerpt":{"head":1,"tail":1}}`)}
	compare.Equal(t, "of a user's message: want all", user.Content, user.Shown(true))
}

// An excerpt of a text that other rules described shows what the rules describe now, and no more of a tool's result than it did.
func TestExcerptsOfOtherDescriptions(t *testing.T) {
	t.Parallel()
	m := core.Message{ID: "m1", Content: strings.Repeat("ü", 100) + " " + strings.Repeat("iVBORw0K", 1000) + " end"}
	whole := strings.Repeat("ü", 100) + " [base64, 6 KB] end"
	cut := "üü\n[… 211 of 219 bytes are left out here; the whole result is message m1 …]\n end"
	for excerpt, want := range map[string]string{`"head":5000,"tail":2500`: whole, `"head":209,"tail":11`: whole, `"head":-1`: whole, `"head":14`: whole, `"head":5,"tail":4`: cut} {
		m.Metadata = json.RawMessage(`{"excerpt":{` + excerpt + `,"described":true}}`)
		for role, want := range map[core.Role]string{core.RoleTool: want, core.RoleUser: whole} {
			m.Role = role
			compare.Equal(t, string(role)+excerpt, want, m.Shown(false))
		}
	}
}

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
	php := strings.NewReplacer("/", `\/`, "\n", `\r\n`).Replace(lines.String())
	var folders, branches strings.Builder // each 76 letters
	for i := range 40 {
		fmt.Fprintf(&folders, "/Volumes/Backup%02d/Library/Containers/Photos/Data/Originals/2024/07/Album%05d\n", i, i)
		fmt.Fprintf(&branches, "feature-SHOP-%04d_Let-Customers-Change-The-Address-Of-An-Order-Until-It-Leaves\n", i)
	}
	for name, c := range map[string]struct{ content, want string }{
		"data URL":            {`{"ok": true, "shot": "data:image/png;base64,` + data + `", "note": "x"}`, `{"ok": true, "shot": "[image/png, 150 KB]", "note": "x"}`},
		"escaped":             {`{"shot":"data:image\/png;charset=x;base64,` + strings.ReplaceAll(data, "/", `\/`) + `"}`, `{"shot":"[image/png, 152 KB]"}`},
		"two":                 {"a " + data + " b data:;base64," + data[:400] + " c", "a [base64, 150 KB] b [data, 300 bytes] c"},
		"URL safe":            {base64.RawURLEncoding.EncodeToString(bytes), "[base64, 150 KB]"},
		"lines":               {"begin\n\n" + lines.String() + "\nend", "begin\n\n[base64, 152 KB]" + lastLine + "\n\nend"},
		"lines, then a word":  {lines.String() + "and so on", "[base64, 152 KB]" + lastLine + "\nand so on"},
		"lines in JSON":       {`{"a":"` + strings.ReplaceAll(lines.String(), "\n", `\r\n`) + `"}`, `{"a":"[base64, 158 KB]` + strings.ReplaceAll(lastLine, "\n", `\r\n`) + `\r\n"}`},
		"indented lines":      {"a: |\n    " + strings.ReplaceAll(lines.String(), "\n", "\n    ") + "end", "a: |\n    [base64, 160 KB]\n    " + lastLine[1:] + "\n    end"},
		"words":               {strings.ReplaceAll(lines.String(), "\n", " ") + "end", "[base64, 152 KB] " + lastLine[1:] + " end"},
		"escaped twice":       {`{\"shot\":\"data:image\\/png;base64,` + strings.ReplaceAll(data, "/", `\\/`) + `\"}`, `{\"shot\":\"[image/png, 155 KB]\"}`},
		"escaped by number":   {`{"shot":"data:image\u002Fpng;base64,` + strings.NewReplacer("/", `\u002F`, "+", `\u002b`).Replace(data) + `"}`, `{"shot":"[image/png, 173 KB]"}`},
		"lines of PHP":        {`{"a":"` + php + `"}`, `{"a":"[base64, 160 KB]` + php[strings.LastIndex(php[:len(php)-4], `\r\n`):] + `"}`},
		"two alphabets":       {data[:4000] + "--" + key[:40], "[base64, 3 KB]--" + key[:40]},
		"folders":             {folders.String(), folders.String()},
		"branches in a table": {strings.ReplaceAll(branches.String(), "\n", "\t"), strings.ReplaceAll(branches.String(), "\n", "\t")},
		"an even picture":     {strings.Repeat("w3jXabcd", 200), "[base64, 1 KB]"},
		"hex":                 {"x=" + hex.EncodeToString(bytes) + ".", "x=[hex, 150 KB]."},
		"key":                 {key, key},
		"small URL":           {"data:image/gif;base64,R0lGODlhAQABAAAAACw=", "data:image/gif;base64,R0lGODlhAQABAAAAACw="},
		"hashes":              {hashes, hashes},
		"letters":             {strings.Repeat("GATTACA", 1000), strings.Repeat("GATTACA", 1000)},
		"digits":              {strings.Repeat("3141592653", 1000), strings.Repeat("3141592653", 1000)},
		"lines of words":      {strings.Repeat("Word2 ", 1000), strings.Repeat("Word2 ", 1000)},
	} {
		m := core.WithExcerpt(core.Message{ID: "m1", Role: core.RoleTool, Content: c.content}, 64<<10)
		compare.Equal(t, name, []string{c.content, c.want}, []string{m.Content, m.Shown(true)})
	}
	long := "data:image/png;base64," + data + strings.Repeat(" word", 1000)
	m := core.WithExcerpt(core.Message{ID: "m1", Role: core.RoleTool, Content: long}, 900)
	if got, want := m.Shown(true), `"offset": 0} reads on`; !strings.HasPrefix(got, "[image/png, 150 KB] word") || !strings.Contains(got, want) || len(got) > 1100 {
		t.Errorf("got %.1500q, want an excerpt with %s", got, want)
	}
}
