package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// 16 requests at once on one session: order
// of acceptance, one running at a time; one summarization.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	const requests = 16
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		p := apptest.NewProvider(t, provider.Options{Window: 8192, Overcount: 1.15, Record: true})
		h := apptest.New(t, url, apptest.WithModel("house", 8192, 2048, p))
		id := apptest.NewSession(t, h.Client, core.Session{})
		fill(t, h.Client, id)
		before, asked := session(t, h.Client, id), len(p.Prompts())
		if before.SummaryCount != 0 {
			t.Fatalf("got %d summaries before, want none", before.SummaryCount)
		}

		answers := make([]apptest.Turn, requests)
		var wg sync.WaitGroup
		for i := range requests {
			wg.Go(func() {
				question := fmt.Sprintf("Question %d: %s", i, strings.Repeat("why? ", 30))
				answers[i] = apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: question})
				if got := answers[i].Answer.Content; got != "answer to: "+answers[i].Question.Content || answers[i].Question.Content != question {
					t.Errorf("question %d: got the answer %.60q", i, got)
				}
			})
		}
		wg.Wait()

		all, after := apptest.ListMessages(t, h.Client, id), session(t, h.Client, id)
		questions := log(all[before.MessageCount:], core.RoleUser)
		queued := inQueue(t, h.Client, id)
		if got := queued[len(queued)-requests:]; !slices.Equal(got, questions) {
			t.Errorf("got the log %.20q, want the order of acceptance %.20q", questions, got)
		}
		wantPrompts(t, p.Prompts()[asked:], log(all, core.RoleUser))
		wantOneAtATime(t, replay(t, h.Client, id))
		contextOf(t, h.Client, id)
		h.Restart() // what is made ahead is finished then
		wantOneCallEach(t, h.Client, id, p)
		if got := after.SummaryCount; got != 1 {
			t.Errorf("got %d summaries in use, want 1", got)
		}

	})
}

// wantOneCallEach wants each version of the summary to be the work of one call, and to
// go further than the one before. It returns how many there are.
func wantOneCallEach(t *testing.T, c *client.Client, id core.SessionID, p *provider.Server) int {
	t.Helper()
	page, err := c.Summaries(t.Context(), id, core.PageQuery{Limit: core.MaxPageLimit})
	if err != nil {
		t.Fatal(err)
	}
	var through []int64
	for _, s := range slices.Backward(page.Items) {
		through = append(through, s.ThroughSeq)
	}
	if int64(len(through)) != p.Summaries() || !slices.IsSorted(through) || len(slices.Compact(slices.Clone(through))) != len(through) {
		t.Errorf("got versions up to the messages %v by %d calls, want one call each, forward", through, p.Summaries())
	}
	return len(through)
}

// fill talks until the session's prompt is so little under the trigger that any
// further question of 40 tokens is over it. It returns how little.
func fill(t *testing.T, c *client.Client, id core.SessionID) int {
	t.Helper()
	for n := 0; ; n++ {
		r, err := c.Context(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		gap := r.Trigger - r.Planned
		if gap <= 40 || n > 200 {
			return gap
		}
		// Question and answer cost twice the words and about 50 tokens besides.
		words := max((gap-120)/4, 1)
		apptest.SendMessage(t, c, core.SendMessage{SessionID: id, Content: fmt.Sprintf("Note %d", n) + strings.Repeat(" and", min(words, 120))})
	}
}

// log returns the contents of the role's messages.
func log(all []core.Message, role core.Role) []string {
	var out []string
	for _, m := range all {
		if m.Role == role {
			out = append(out, m.Content)
		}
	}
	return out
}

// inQueue returns what the session was asked, in the order of acceptance.
func inQueue(t testing.TB, c *client.Client, id core.SessionID) []string {
	t.Helper()
	var runs []core.Run
	q := core.PageQuery{Limit: core.MaxPageLimit}
	for {
		page, err := c.Runs(t.Context(), id, q)
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, page.Items...)
		if page.NextCursor == nil {
			break
		}
		q.Cursor = *page.NextCursor
	}
	slices.SortFunc(runs, func(a, b core.Run) int { return int(a.QueueSeq - b.QueueSeq) })
	var out []string
	for _, r := range runs {
		out = append(out, r.Input.Content)
	}
	return out
}

// wantPrompts wants each prompt to be about the log's next question, with those
// before it in the order of the log.
func wantPrompts(t *testing.T, prompts [][]string, asked []string) {
	t.Helper()
	first := len(asked) - len(prompts)
	for i, users := range prompts {
		end := first + i + 1
		if end < len(users) || !slices.Equal(users, asked[end-len(users):end]) {
			t.Errorf("prompt %d: got the questions %.20q, want the end of the log up to %.20q", i, users, asked[end-1])
		}
	}
}

// replay returns all durable events of a session so far.
func replay(t testing.TB, c *client.Client, id core.SessionID) []core.Event {
	t.Helper()
	page, err := c.Messages(t.Context(), id, core.MessageQuery{PageQuery: core.PageQuery{Limit: 1}})
	if err != nil {
		t.Fatal(err)
	}
	var all []core.Event
	for e, err := range c.WatchSession(t.Context(), id, core.Cursor{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq > 0 {
			all = append(all, e)
		}
		if e.Seq >= page.LastEventID {
			break
		}
	}
	for i, e := range all {
		if e.Seq != int64(i+1) {
			t.Fatalf("got event %d at place %d, want no gap", e.Seq, i+1)
		}
	}
	return all
}

// wantOneAtATime returns how many runs of the session were at work at once.
func wantOneAtATime(t *testing.T, events []core.Event) int {
	t.Helper()
	running, most := 0, 0
	for _, e := range events {
		switch e.Type {
		case core.EventRunStarted:
			running++
		case core.EventRunSucceeded, core.EventRunFailed, core.EventRunCanceled:
			running--
		}
		most = max(most, running)
	}
	if most != 1 || running != 0 {
		t.Errorf("got %d runs at work at once and %d left, want one at a time", most, running)
	}
	return most
}

// Many sessions at once do not mix: each has its own questions, answered in the
// order of acceptance.
func TestManySessions(t *testing.T) {
	t.Parallel()
	const sessions, each = 50, 4
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		p := apptest.NewProvider(t, provider.Options{Window: 8192})
		h := apptest.New(t, url, apptest.WithModel("house", 8192, 2048, p))
		ids := make([]core.SessionID, sessions)
		for i := range ids {
			ids[i] = apptest.NewSession(t, h.Client, core.Session{})
		}
		var wg sync.WaitGroup
		for i, id := range ids {
			for n := range each {
				wg.Go(func() {
					question := fmt.Sprintf("session %d, question %d", i, n)
					got := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: question})
					if got.Answer.Content != "answer to: "+question {
						t.Errorf("%s: got %q", question, got.Answer.Content)
					}
				})
			}
		}
		wg.Wait()
		for i, id := range ids {
			all := apptest.ListMessages(t, h.Client, id)
			questions := log(all, core.RoleUser)
			if len(all) != 2*each || !slices.Equal(questions, inQueue(t, h.Client, id)) {
				t.Errorf("session %d: got %q, want %d turns in the order of acceptance", i, questions, each)
			}
			for k, q := range questions {
				if all[2*k+1].Content != "answer to: "+q {
					t.Errorf("session %d: got %q after %q", i, all[2*k+1].Content, q)
				}
			}
			wantOneAtATime(t, replay(t, h.Client, id))
		}
	})
}
