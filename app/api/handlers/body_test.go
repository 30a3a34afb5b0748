package handlers_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// target has a field of every type that bodies have.
type target struct {
	Text   string          `json:"text"`
	Number int             `json:"number"`
	Share  float64         `json:"share"`
	Flag   bool            `json:"flag"`
	List   []string        `json:"list"`
	Maybe  *string         `json:"maybe"`
	Raw    json.RawMessage `json:"raw"`
}

func TestDecodeTypes(t *testing.T) {
	t.Parallel()
	tests := []struct{ body, want string }{
		{`{"text":1}`, "text must be a string, not number"},
		{`{"maybe":true}`, "maybe must be a string, not bool"},
		{`{"number":"1"}`, "number must be a whole number, not string"},
		{`{"number":1.5}`, "number must be a whole number, not number 1.5"},
		{`{"share":[]}`, "share must be a number, not array"},
		{`{"flag":"yes"}`, "flag must be true or false, not string"},
		{`{"list":{}}`, "list must be a list, not object"},
		{`{"list":[7]}`, "list must be a string, not number"},
	}
	for _, tt := range tests {
		var got target
		err := handlers.Decode([]byte(tt.body), &got)
		if !errors.Is(err, core.ErrInvalid) || err.Error() != tt.want {
			t.Errorf("%s: got %v, want %s", tt.body, err, tt.want)
		}
	}
	var got target
	must.Do(t, handlers.Decode([]byte(`{"text":"a","number":-1,"share":1e2,"flag":true,"list":["x"],"maybe":"b","raw":[1]}`), &got))
	if got.Text != "a" || got.Number != -1 || got.Share != 100 || !got.Flag || got.List[0] != "x" || *got.Maybe != "b" || string(got.Raw) != "[1]" {
		t.Errorf("got %+v, want all fields set", got)
	}
}

// TestDecodeIsBounded: a large body with a million faults is refused in few words.
func TestDecodeIsBounded(t *testing.T) {
	t.Parallel()
	var body strings.Builder
	body.WriteString(`{"` + strings.Repeat("x", 1<<20) + `":1`)
	for i := range 9_000 {
		fmt.Fprintf(&body, `,"f%d":1`, i)
	}
	body.WriteString("}")
	var got target
	var shown *core.Error
	if err := handlers.Decode([]byte(body.String()), &got); !errors.As(err, &shown) || len(shown.Fields) != 20 || len(shown.Message) > 4096 {
		t.Errorf("got %v, want 20 faults in few words", err)
	}
}

// What a body may hold is counted before it is decoded: decoding costs a few times the
// length of the body, and what holds more than that is refused.
func TestDecodeMemory(t *testing.T) { // not parallel: it measures what the process allocates
	size := 2 << 20
	if os.Getenv("BOBBIN_TEST_LONG") != "" {
		size = 8 << 20
	}
	fill := func(begin, unit, end string, most int) string {
		n := min((size-len(begin)-len(end))/(len(unit)+1), most)
		return begin + strings.Repeat(unit+",", n-1) + unit + end
	}
	var names strings.Builder
	for i := range 9_900 {
		fmt.Fprintf(&names, `,"%x":0`, i)
	}
	for name, tt := range map[string]struct {
		body    string
		refused bool
		most    uint64 // bytes
	}{
		"a list of objects":             {fill(`{"calls":[`, `{}`, `]}`, size), true, 1 << 20},
		"a list of lists":               {fill(`{"raw":[`, `[]`, `]}`, size), true, 1 << 20},
		"numbers":                       {fill(`{"raw":[`, `0`, `]}`, size), true, 1 << 20},
		"deep":                          {`{"raw":` + strings.Repeat("[", size/2) + strings.Repeat("]", size/2) + "}", true, 1 << 20},
		"as many objects as may be":     {fill(`{"calls":[`, `{}`, `]}`, 4_900), false, 3 << 20},
		"as many names as may be":       {`{"text":""` + names.String() + `}`, true, 3 << 20},
		"one text":                      {`{"text":"` + strings.Repeat("a", size-12) + `"}`, false, uint64(size) + 1<<20},
		"one text of escaped bytes":     {`{"text":"` + strings.Repeat(`\u0001`, size/6-2) + `"}`, false, uint64(size) + 2<<20},
		"one text where none is wanted": {`{"number":"` + strings.Repeat("a", size-14) + `"}`, true, uint64(size) + 1<<20},
	} {
		data := []byte(tt.body)
		var got struct {
			Text   string          `json:"text"`
			Number int             `json:"number"`
			Raw    json.RawMessage `json:"raw"`
			Calls  []core.ToolCall `json:"calls"`
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		err := handlers.Decode(data, &got)
		runtime.ReadMemStats(&after)
		compare.Equal(t, fmt.Sprintf("%s: got %v, want a refusal", name, err), errors.Is(err, core.ErrInvalid), tt.refused)
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > tt.most {
			t.Errorf("%s: got %d bytes allocated for a body of %d, want at most %d", name, allocated, len(data), tt.most)
		} else {
			t.Logf("%s: %d bytes allocated for a body of %d", name, allocated, len(data))
		}
	}
}

// FuzzDecode: whatever comes in, Decode does not panic, refuses by an error that
// may be shown, and takes over nothing that encoding/json would not.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `null`, `[]`, `{"text":"x"}`, `{"text":null,"x":1}`, `{"text":"\ud800"}`, "{\"text\":\"\xff\"}", `{"text":"a","text":"b"}`,
		`{"number":1e400}`, `{"raw":{"a":[{}]}}`, `{"":1}`, "{\n\"a\"", `{"list":["a",1]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got target
		err := handlers.Decode(data, &got)
		if err != nil {
			var shown *core.Error
			if !errors.As(err, &shown) || !errors.Is(err, core.ErrInvalid) || !utf8.ValidString(shown.Message) {
				t.Fatalf("got error %v, want a core.Error of kind invalid in valid UTF-8", err)
			}
			return
		}
		var want target
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatalf("took over %q, which encoding/json refuses: %v", data, err)
		}
		if got.Text != want.Text || got.Number != want.Number || got.Share != want.Share || got.Flag != want.Flag {
			t.Fatalf("got %+v from %q, want %+v", got, data, want)
		}
	})
}
