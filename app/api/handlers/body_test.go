package handlers_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
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
	if err := handlers.Decode([]byte(`{"text":"a","number":-1,"share":1e2,"flag":true,"list":["x"],"maybe":"b","raw":[1]}`), &got); err != nil {
		t.Fatalf("got %v, want nil", err)
	}
	if got.Text != "a" || got.Number != -1 || got.Share != 100 || !got.Flag || got.List[0] != "x" || *got.Maybe != "b" || string(got.Raw) != "[1]" {
		t.Errorf("got %+v, want all fields set", got)
	}
}

// TestDecodeIsBounded: a large body with a million faults is refused in few words.
func TestDecodeIsBounded(t *testing.T) {
	t.Parallel()
	var body strings.Builder
	body.WriteString(`{"` + strings.Repeat("x", 1<<20) + `":1`)
	for i := range 100_000 {
		fmt.Fprintf(&body, `,"f%d":1`, i)
	}
	body.WriteString("}")
	var got target
	var shown *core.Error
	if err := handlers.Decode([]byte(body.String()), &got); !errors.As(err, &shown) || len(shown.Fields) != 20 || len(shown.Message) > 4096 {
		t.Errorf("got %v, want 20 faults in few words", err)
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
