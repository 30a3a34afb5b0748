package repositories_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// large puts messages of 300 KiB into a new session, which have it in any of their texts,
// with short ones between them.
func (s *store) large(t *testing.T) core.SessionID {
	t.Helper()
	id := s.session(t).ID
	text := func(n int) string { return strings.Repeat(fmt.Sprintf("%09d ", n), 30<<10) }
	var list []core.Message
	for n := range 8 {
		question, answer := said(core.RoleUser, fmt.Sprintf("question %d", n)), said(core.RoleAssistant, "")
		switch n % 4 {
		case 0:
			answer.Content = text(n)
		case 1:
			answer.ToolCalls = []core.ToolCall{{ID: "a", Name: "write", Arguments: text(n), Signature: "s"}, {ID: "b", Name: "read", Arguments: "{}"}}
		case 2:
			answer.Parts = []core.Part{{Type: "reasoning", Text: text(n), Signature: "s", Origin: "o"}, {Type: "file", MediaType: "text/plain", Name: "a.txt", Size: 7}}
		case 3:
			answer.Metadata = json.RawMessage(`{"note": "` + text(n) + `"}`)
		}
		list = append(list, question, answer)
	}
	list[2].Pinned, list[3].Pinned, list[14].Pinned = true, true, true
	s.append(t, id, true, list...)
	return id
}

// A conversation of any size is loaded with the newest MiB of its texts, in one
// statement; what the older messages are but for their texts is there.
func TestConversationLoadsTheNewestTexts(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.large(t)
		before := s.Statements()
		got := s.log(t, id)
		if n := s.Statements() - before; n != 1 || len(got) != 16 {
			t.Fatalf("got %d messages by %d statements, want 16 by one", len(got), n)
		}
		var ids []core.MessageID
		for _, m := range got {
			ids = append(ids, m.ID)
		}
		whole := must.Get(s.messages.GetMessages(t.Context(), ann(), id, ids))(t)
		// Three of 300 KiB fit, and the short ones between them.
		want := append([]core.Message(nil), whole...)
		for i := range 10 {
			want[i] = want[i].WithoutTexts()
		}
		for i := range got {
			size := want[i].Unloaded
			if got[i].Unloaded < size || got[i].Unloaded > size+size/100+200 {
				t.Errorf("message %d: %d bytes are said to be unloaded, want about %d", i+1, got[i].Unloaded, size)
			}
			want[i].Unloaded = got[i].Unloaded
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("messages (-want +got):\n%.4000s", diff)
		}
		if m := whole[3]; len(m.ToolCalls[0].Arguments) != 300<<10 || m.ToolCalls[0].Signature != "s" || m.Unloaded != 0 {
			t.Errorf("got %d bytes of arguments, want the message whole", len(m.ToolCalls[0].Arguments))
		}
	})
}

// The same of the pinned messages, and of those after a cursor: each question has its
// own newest texts.
func TestPinnedMessagesLoadTheNewestTexts(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.large(t)
		pinned, err := s.messages.Pinned(t.Context(), ann(), id)
		if err != nil || len(pinned) != 3 {
			t.Fatalf("got %d pinned messages, %v, want 3", len(pinned), err)
		}
		for i, m := range pinned {
			if m.Unloaded != 0 || m.TextBytes() == 0 {
				t.Errorf("pinned message %d: %d bytes are not loaded, want all", i, m.Unloaded)
			}
		}
		log := s.log(t, id)
		after, err := s.messages.GetMessagesAfter(t.Context(), ann(), id, log[9].ID)
		if err != nil || len(after) != 6 || after[0].Unloaded != 0 {
			t.Errorf("got %d messages after the cursor, %v, want 6, all whole: they have less than a MiB", len(after), err)
		}
	})
}

// A message larger than the limit is not loaded.
func TestOneMessageLargerThanWhatIsLoaded(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id := s.session(t).ID
		s.append(t, id, true, said(core.RoleUser, "short"), said(core.RoleUser, strings.Repeat("x", 2<<20)), said(core.RoleUser, "short, too"))
		got := s.log(t, id)
		if got[0].Unloaded != len("short") || got[1].Unloaded != 2<<20 || got[1].Content != "" || got[2].Content != "short, too" {
			t.Errorf("got %d, %d and %d bytes left, want the newest message alone", got[0].Unloaded, got[1].Unloaded, got[2].Unloaded)
		}
	})
}

// Messages are found by their ids on any branch of their own session; deleted ones and
// those of other sessions are not.
func TestGetMessages(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		id, all := s.branched(t)
		other := s.session(t).ID
		s.turns(t, other, 1)
		ids := []core.MessageID{s.log(t, other)[0].ID}
		for _, m := range all {
			ids = append(ids, m.ID)
			for range 30 { // together more than one statement takes
				ids = append(ids, core.NewID[core.MessageID]())
			}
		}
		got, err := s.messages.GetMessages(t.Context(), ann(), id, ids)
		want := []int64{1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23}
		if diff := cmp.Diff(want, seqs(got)); err != nil || diff != "" {
			t.Errorf("messages (-want +got): %v\n%s", err, diff)
		}
	})
}
