package core_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"bobbin/app/core"
	"bobbin/app/core/searchtext"
	"bobbin/tests/compare"
	"bobbin/tests/must"
	"bobbin/tests/seed"
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

func TestJSONSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ values, depth int }{
		`1`:                     {1, 0},
		`[]`:                    {2, 1},
		`{"a":1,"b":[2,3]}`:     {5, 2},
		`"[,{\"[,"`:             {1, 0},
		`["\\",["]"]]`:          {4, 2},
		`[[],[],[[]]]`:          {8, 3},
		` { "a\"," : null } `:   {2, 1},
		`]]]][`:                 {2, 0},
		`"` + `\`:               {1, 0},
		``:                      {1, 0},
		strings.Repeat("[", 99): {100, 99},
	} {
		if values, depth := core.JSONSize([]byte(text)); values != want.values || depth != want.depth {
			t.Errorf("%s: got %d values and %d levels, want %d and %d", text, values, depth, want.values, want.depth)
		}
	}
}

// No JSON text has more values or levels than are told.
func TestJSONSizeIsNoLess(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(t *rapid.T) {
		v := value(t, 5)
		text, err := json.Marshal(v)
		must.True(t, err == nil, "marshal: %v", err)
		wantValues, wantDepth := sizeOf(v)
		if values, depth := core.JSONSize(text); values < wantValues || depth != wantDepth {
			t.Errorf("%s: got %d values and %d levels, want at least %d and just %d", text, values, depth, wantValues, wantDepth)
		}
	})
}

// value draws what JSON can say.
func value(t *rapid.T, levels int) any {
	switch kind := rapid.IntRange(0, 4).Draw(t, "kind"); {
	case levels > 0 && kind == 0:
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) any { return value(t, levels-1) }), 0, 4).Draw(t, "list")
	case levels > 0 && kind == 1:
		return rapid.MapOfN(rapid.String(), rapid.Custom(func(t *rapid.T) any { return value(t, levels-1) }), 0, 4).Draw(t, "object")
	case kind == 2:
		return rapid.Float64Range(-1e9, 1e9).Draw(t, "number")
	default:
		return rapid.StringMatching(`[a-z"\\\[\]{},:]*`).Draw(t, "text")
	}
}

// sizeOf counts the values and levels of a value.
func sizeOf(v any) (values, depth int) {
	var inner []any
	switch v := v.(type) {
	case []any:
		inner = v
	case map[string]any:
		for _, member := range v {
			inner = append(inner, member)
		}
	default:
		return 1, 0
	}
	values = 1
	for _, member := range inner {
		n, d := sizeOf(member)
		values, depth = values+n, max(depth, d)
	}
	return values, depth + 1
}

func TestCheckJSON(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"small":       {`{"a":[1,2]}`, ""},
		"most levels": {strings.Repeat("[", 64) + strings.Repeat("]", 64), ""},
		"too deep":    {strings.Repeat("[", 65) + strings.Repeat("]", 65), "is nested more than 64 levels deep"},
		"most values": {"[" + strings.Repeat("1,", 997) + "1]", ""},
		"too many":    {"[" + strings.Repeat("{},", 600) + "{}]", "has more than 1000 values"},
	} {
		err := core.CheckJSON([]byte(tt.text), 1000)
		if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, core.ErrInvalid) || err.Error() != tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}

func TestJSONSizeAllocatesNothing(t *testing.T) {
	text := []byte(strings.Repeat(`{"a":[1,"x"],`, 1000))
	compare.Equal(t, "allocations", 0, testing.AllocsPerRun(10, func() { core.JSONSize(text) }))
}

func TestFaults(t *testing.T) {
	var f core.Faults
	must.Do(t, f.Err())
	compare.Equal(t, "the text is stored as", core.CleanText("a\x00b"), f.Text("title", "a\x00b", 5))
	f.Text("title", "four", 3)
	f.Metadata([]byte(`[1]`), 10)
	f.Metadata([]byte(`{"a":"long enough"}`), 10)
	f.Metadata(nil, 10)
	err := f.Err()
	want := "title has 4 bytes, at most 3 are allowed; metadata must be a JSON object; metadata has 19 bytes, at most 10 are allowed"
	compare.True(t, errors.Is(err, core.ErrInvalid) && err.Error() == want, "got  %v\nwant %s", err, want)
}

func TestFaultsAreBounded(t *testing.T) {
	var f core.Faults
	for range 1000 {
		f.Add("x", "is wrong")
	}
	var e *core.Error
	compare.True(t, errors.As(f.Err(), &e) && len(e.Fields) == 20 && strings.Count(e.Message, "is wrong") == 20, "1000 faults are told as %d", len(e.Fields))
}

// Python's json module cannot read objects that are nested thousands of levels deep.
func TestFaultsMetadataDepth(t *testing.T) {
	nested := func(levels int) []byte {
		return []byte(strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels))
	}
	var f core.Faults
	f.Metadata(nested(core.MaxMetadataDepth), 16<<10)
	f.Metadata([]byte(`{"a":"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["}`), 16<<10)
	if err := f.Err(); err != nil {
		t.Errorf("got %v for metadata of %d levels, want none", err, core.MaxMetadataDepth)
	}
	f.Metadata(nested(core.MaxMetadataDepth+1), 16<<10)
	if got, want := f.Err(), "metadata is nested more than 32 levels deep"; got == nil || got.Error() != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

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
