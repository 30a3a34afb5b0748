package eval_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/searchtext"
	"bobbin/app/eval"
)

// Every fact of a sample has a question that nobody could answer with the fact's own
// words: none of them is in it, and at most half of its words are in the message.
func TestQuestionsAreInOtherWords(t *testing.T) {
	t.Parallel()
	for _, s := range eval.List() {
		_, raw, err := eval.Get(s.Name)
		if err != nil {
			t.Fatal(err)
		}
		asked := map[string]string{}
		for line := range bytes.Lines(raw) {
			var m struct {
				Content   string `json:"content"`
				ToolCalls []struct {
					Arguments string `json:"arguments"`
				} `json:"tool_calls"`
				Metadata struct {
					Facts []struct{ Text, Ask string }
				}
			}
			if err := json.Unmarshal(line, &m); err != nil {
				t.Fatal(err)
			}
			for _, c := range m.ToolCalls {
				m.Content += " " + c.Arguments
			}
			said := words(m.Content)
			for _, f := range m.Metadata.Facts {
				ask, fact, shared := words(f.Ask), words(f.Text), 0
				for w := range ask {
					if fact[w] {
						t.Errorf("%s: the question %q has %q of its fact %q", s.Name, f.Ask, w, f.Text)
					}
					if said[w] {
						shared++
					}
				}
				if len(ask) == 0 || 2*shared > len(ask) {
					t.Errorf("%s: the question %q shares %d of its %d words with the message that says %q; want other words", s.Name, f.Ask, shared, len(ask), f.Text)
				}
				if other, ok := asked[f.Ask]; ok && other != f.Text {
					t.Errorf("%s: the question %q has two answers, %q and %q", s.Name, f.Ask, other, f.Text)
				}
				asked[f.Ask] = f.Text
			}
		}
		if len(asked) < 15 {
			t.Errorf("%s: got %d questions, want more", s.Name, len(asked))
		}
	}
}

// words returns the words of a text that are longer than the commonest of English.
func words(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range searchtext.Text(text).Words {
		if len(w) > 3 {
			out[w] = true
		}
	}
	return out
}

func TestGet(t *testing.T) {
	t.Parallel()
	for _, s := range eval.List() {
		got, raw, err := eval.Get(s.Name)
		if err != nil || got != s || !bytes.HasPrefix(raw, []byte(`{"role":"system"`)) || s.About == "" || s.Window < 8_192 {
			t.Errorf("sample %s: got %+v, %d bytes, %v, want a conversation", s.Name, got, len(raw), err)
		}
		if !bytes.Contains(raw, []byte(`"facts"`)) || bytes.ContainsAny(raw, "⟦⟧") || bytes.Contains(raw, []byte("%!")) {
			t.Errorf("sample %s: want planted facts, and no marks of the generator", s.Name)
		}
	}
	if _, _, err := eval.Get("../secret"); !errors.Is(err, core.ErrNotFound) || !strings.Contains(err.Error(), "chat, coding, cjk, incident") {
		t.Errorf("got %v, want an error that names the samples", err)
	}
}
