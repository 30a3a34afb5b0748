package core_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"bobbin/app/core"
)

// A large tool result is kept whole, and prompts show its
// beginning, its end, and where the rest is.
func TestExcerpt(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("head ", 100) + strings.Repeat("tail ", 100)
	m := core.WithExcerpt(core.Message{ID: "m1", Role: core.RoleTool, Content: content}, 90)
	if m.Content != content || string(m.Metadata) != `{"excerpt":{"head":60,"tail":30}}` {
		t.Fatalf("got %d bytes with metadata %s, want all of them", len(m.Content), m.Metadata)
	}
	want := strings.Repeat("head ", 12) + "\n[… 910 of 1000 bytes are left out here; the whole result is message m1 …]\n" + strings.Repeat("tail ", 6)
	if got := m.Shown(false); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := m.Shown(true); !strings.Contains(got, `message m1; read_result {"message_id": "m1", "offset": 60} reads on …]`) {
		t.Errorf("got %q, want how to read on", got)
	}
	for _, limit := range []int{0, 1000, 2000} {
		if m := core.WithExcerpt(core.Message{Role: core.RoleTool, Content: content}, limit); m.Metadata != nil || m.Shown(true) != content {
			t.Errorf("limit %d: got metadata %s, want the whole", limit, m.Metadata)
		}
	}
}

// Excerpts are cut between characters, whatever the text is.
func TestExcerptOfCharacters(t *testing.T) {
	t.Parallel()
	for _, letter := range []string{"a", "ü", "世", "👋"} {
		for limit := 1; limit < 40; limit++ {
			m := core.WithExcerpt(core.Message{Role: core.RoleTool, Content: strings.Repeat(letter, 50)}, limit)
			e, ok := m.Excerpt()
			if got := m.Shown(true); !utf8.ValidString(got) || ok && e.Head+e.Tail > limit {
				t.Errorf("%s in %d bytes: got %+v, %q", letter, limit, e, got)
			}
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
		if got := m.Shown(true); got != m.Content {
			t.Errorf("%s: got %q, want all", raw, got)
		}
	}
	user := core.Message{Role: core.RoleUser, Content: "a long message", Metadata: json.RawMessage(`{"excerpt":{"head":1,"tail":1}}`)}
	if got := user.Shown(true); got != user.Content {
		t.Errorf("got %q of a user's message, want all", got)
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	var d core.Duration
	if err := json.Unmarshal([]byte(`"1m30s"`), &d); err != nil || fmt.Sprint(int64(d)) != "90000000000" {
		t.Errorf("got %d, error %v, want 90 s", d, err)
	}
	if raw, err := json.Marshal(d); err != nil || string(raw) != `"1m30s"` {
		t.Errorf("got %s, error %v", raw, err)
	}
	if err := json.Unmarshal([]byte(`"soon"`), &d); err == nil {
		t.Error("soon: got no error")
	}
}
