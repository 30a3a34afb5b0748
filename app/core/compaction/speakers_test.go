package compaction_test

import (
	"strings"
	"testing"

	"bobbin/app/core"
)

// say adds a message of a user with its answer.
func (w *world) say(id, author, content string) {
	m := w.said(core.RoleUser, content+strings.Repeat(" word", 40))
	m.AuthorID, m.Author = id, author
	w.add(m)
	w.add(w.said(core.RoleAssistant, "noted"))
}

// The prompt of one speaker has no names. From the second one's first message on it has, and
// what was sent before stays as it was. /context shows what is sent.
func TestPromptNamesSpeakers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 8192)
	w.say("u1", "Ann", "the pump is red")
	w.say("u1", "Ann", "and tall")
	prompt := func() []string {
		t.Helper()
		var users []string
		for _, m := range w.view().Messages {
			if m.Role == core.RoleUser {
				users = append(users, strings.TrimSuffix(m.Content, strings.Repeat(" word", 40)))
			}
		}
		return users
	}
	want := []string{"the pump is red", "and tall"}
	check := func(what string) {
		t.Helper()
		if got := prompt(); strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	check("one speaker")
	w.say("u2", "Ben", "no, it is blue")
	w.say("u1", "Ann", "look again")
	want = append(want, "[from user Ben]\nno, it is blue", "[from user Ann]\nlook again")
	check("two speakers")
}

// The summary model gets the names of all speakers, in the form that prompts have, and is told
// what it means; of one speaker it gets none.
func TestSummaryNamesSpeakers(t *testing.T) {
	t.Parallel()
	for _, others := range []bool{false, true} {
		w := newWorld(t, core.ContextSettings{}, 8192)
		w.say("u1", "Ann", "the pump is red")
		w.say("u1", "Ann", "and tall")
		if others {
			w.say("u2", "Ben", "no, it is blue")
			w.say("u2", "Ben", "at night")
		}
		for range 3 {
			w.say("u1", "Ann", "look again")
		}
		w.writer.Add("Ann says the pump is red and tall. Ben says it is blue. Noted word.")
		_, _ = w.keeper.Summarize(t.Context(), w.scope(), w.Session.ID, "")
		requests := w.writer.Requests()
		if len(requests) == 0 {
			t.Fatal("the summary model was not asked")
		}
		text := requests[0].Messages[0].Content
		for _, line := range []string{"[1] user: [from user Ann]\nthe pump is red", "[5] user: [from user Ben]\nno, it is blue", `"[from user NAME]", names who wrote it`} {
			if got := strings.Contains(text, line); got != others {
				t.Errorf("several speakers %v: %q in the request: %v\n%s", others, line, got, text)
			}
		}
	}
}
