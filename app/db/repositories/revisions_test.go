package repositories_test

import (
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// remainsOf counts the rows of every table in which a text is.
func (s *store) remainsOf(t *testing.T, text string) map[string]int {
	t.Helper()
	hits := map[string]int{}
	for table, column := range map[string]string{
		"messages": "content", "message_revisions": "content", "session_events": "CAST(data AS text)", "session_summaries": "content",
		"sessions": "title || COALESCE(conversation_summary, '')", "idempotency_keys": "COALESCE(CAST(body AS text), '')",
	} {
		if n := s.count(t, "SELECT COUNT(*) FROM "+table+" WHERE "+column+" LIKE ?", "%"+text+"%"); n > 0 {
			hits[table] = n
		}
	}
	return hits
}

// After an edit in place the old text is in its revision and nowhere else; a deletion, a purge
// and a fork leave no revision.
func TestReviseReplacesEverywhere(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		branches := repositories.NewBranches(s.Gorm)
		id := s.session(t).ID
		run := s.accept(t, ask(id, "the zebra is red")).Run
		s.finish(t, run, "noted")
		log := s.log(t, id)
		s.giveTitle(t, id, "About a zebra", log[0].ID)
		s.summarize(t, id, log[1])
		s.exec(t, "UPDATE session_summaries SET content = 'zebra' WHERE session_id = ?", id)
		s.exec(t, "UPDATE sessions SET conversation_summary = 'zebra' WHERE id = ?", id)
		s.exec(t, "UPDATE messages SET finish_reason = 'content_filter' WHERE id = ?", log[0].ID)
		s.keep(t, "k", "POST /x", `{"message":{"id":"`+string(log[0].ID)+`","content":"zebra"}}`)

		_, _, err := branches.Revise(t.Context(), ann(), core.ReviseMessage{SessionID: id, MessageID: log[0].ID, Content: "the horse is blue", TokenCount: 5})
		must.Do(t, err)
		if hits := s.remainsOf(t, "zebra"); len(hits) != 1 || hits["message_revisions"] != 1 {
			t.Errorf("got the old text in %v, want it in its revision alone", hits)
		}
		for _, e := range s.allEvents(t, id) {
			if text := dataText(t, e); strings.Contains(text, "zebra") {
				t.Errorf("event %d %s: got %s", e.Seq, e.Type, text)
			}
		}
		for word, want := range map[string]int{"zebra": 0, "horse": 1} {
			compare.Equal(t, fmt.Sprintf("search %s: results", word), want, len(s.search(t, ann(), core.SearchQuery{Text: word}).Items))
		}
		late := core.NewTitle{SessionID: id, RunID: run.ID, Title: "About a zebra", Of: []core.MessageID{log[0].ID}}
		compare.Equal(t, "title of the old text: len(events): want it dropped", 0, len(must.Get(s.sessions.GiveTitle(t.Context(), ann(), late))(t)))
		for _, wanted := range []bool{true, false} {
			page, err := s.messages.List(t.Context(), ann(), id, core.MessageQuery{Revisions: wanted})
			if err != nil || page.Items[0].RevisedAt == nil || page.Items[0].FinishReason != "" || len(page.Items[0].Revisions) > 0 != wanted {
				t.Errorf("list with revisions %v: got %+v, error %v", wanted, page.Items[0], err)
			}
		}
		fork := must.Get(branches.Fork(t.Context(), ann(), core.ForkSession{SessionID: id}))(t)
		if copied := s.log(t, fork.ID)[0]; copied.Content != "the horse is blue" || copied.RevisedAt != nil {
			t.Errorf("fork: got %+v, want the new text without a revision", copied)
		}
		s.erase(t, id, log[0].ID)
		if hits := s.remainsOf(t, "zebra"); len(hits) > 0 {
			t.Errorf("after the deletion: got the old text in %v", hits)
		}
	})
}
