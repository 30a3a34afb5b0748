package e2e_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// W12, first and short: no summary, no model call but the answer's.
func TestFirstMessage(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{Window: 8192})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 8192, 2048, p))
	id := apptest.NewSession(t, h.Client, core.Session{})
	empty := contextOf(t, h.Client, id)
	if empty.Coverage.Messages != 0 || sections(empty, "tail", "run", "summary") != 0 {
		t.Errorf("before: got %+v, want no messages", empty)
	}
	got := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "hello", Author: "Ada", Source: core.SourceWeb})
	if got.Answer.Content != "answer to: hello" || got.Question.Author != "Ada" || got.Run.AnswerID != got.Answer.ID {
		t.Errorf("got %+v after %+v, want the answer to hello", got.Answer, got.Question)
	}
	all := apptest.ListMessages(t, h.Client, id)
	if len(all) != 2 || p.Requests() != 1 || session(t, h.Client, id).SummaryCount != 0 {
		t.Errorf("got %d messages and %d requests to the provider, want 2 and 1", len(all), p.Requests())
	}
	contextOf(t, h.Client, id)
}

// API: a repeated client_message_id answers with the same run, also at once.
func TestRepeatedClientMessageID(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		p := apptest.NewProvider(t, provider.Options{Window: 8192})
		h := apptest.New(t, url, apptest.WithModel("house", 8192, 2048, p))
		id := apptest.NewSession(t, h.Client, core.Session{})
		m := core.SendMessage{SessionID: id, Content: "only once", ClientMessageID: "c-1"}
		runs := make([]core.RunID, 12)
		var wg sync.WaitGroup
		for i := range runs {
			wg.Go(func() {
				switch i % 3 { // all three ways to ask
				case 0:
					runs[i] = apptest.SendMessage(t, h.Client, m).Run.ID
				case 1:
					a, err := h.SendAndWait(t.Context(), m)
					if err != nil || a.Message == nil || a.Message.Content != "answer to: only once" {
						t.Errorf("got %+v and %v, want the answer", a, err)
					}
					runs[i] = a.Run.ID
				default:
					run, err := h.SendAsync(t.Context(), m)
					if err != nil {
						t.Error(err)
					}
					runs[i] = run.ID
				}
			})
		}
		wg.Wait()
		for i := range runs {
			if runs[i] != runs[0] {
				t.Errorf("request %d: got the run %s, want %s", i, runs[i], runs[0])
			}
		}
		if got := apptest.SendMessage(t, h.Client, m).Run.ID; got != runs[0] {
			t.Errorf("afterwards: got the run %s, want %s", got, runs[0])
		}
		if n := len(apptest.ListMessages(t, h.Client, id)); n != 2 || p.Requests() != 1 {
			t.Errorf("got %d messages and %d requests to the provider, want 2 and 1", n, p.Requests())
		}
	})
}

// What cannot be accepted changes nothing and says what is wrong.
func TestRefusedMessages(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{Window: 8192})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 8192, 2048, p))
	id := apptest.NewSession(t, h.Client, core.Session{})
	for _, c := range []struct {
		name    string
		message core.SendMessage
		kind    error
		status  int
		words   string
	}{
		{"over 1 MiB", core.SendMessage{Content: strings.Repeat("x", 1<<20+1)}, core.ErrTooLarge, 413, "1048577 bytes"},
		{"over 8 MiB", core.SendMessage{Content: strings.Repeat("x", 9<<20)}, core.ErrTooLarge, 413, ""},
		{"empty", core.SendMessage{Content: " \n"}, core.ErrInvalid, 422, "empty"},
		{"unknown model", core.SendMessage{Content: "hi", Model: "hal-9000"}, core.ErrInvalid, 422, "hal-9000"},
		{"unknown session", core.SendMessage{SessionID: core.NewID[core.SessionID](), Content: "hi"}, core.ErrNotFound, 404, "session"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.message.SessionID == "" {
				c.message.SessionID = id
			}
			_, err := h.SendAndWait(t.Context(), c.message)
			wantProblem(t, err, c.kind, c.status, c.words)
		})
	}
	t.Run("unknown agent", func(t *testing.T) {
		t.Parallel()
		_, err := h.CreateSession(t.Context(), core.Session{Agent: "nobody"})
		wantProblem(t, err, core.ErrInvalid, 422, "assistant, quick, researcher")
	})
	t.Cleanup(func() {
		if p.Requests() != 0 {
			t.Errorf("got %d requests to the provider, want none", p.Requests())
		}
	})
}

// wantProblem wants an error of the kind and status with the words in it.
func wantProblem(t testing.TB, err error, kind error, status int, words string) {
	t.Helper()
	var problem *client.ProblemError
	if !errors.As(err, &problem) || !errors.Is(err, kind) || problem.Status != status || !strings.Contains(err.Error(), words) {
		t.Errorf("got the error %v, want %v (%d) with %q in it", err, kind, status, words)
	}
}

// W12: one message larger than the budget is shortened in the prompt, visibly, and
// whole in the database; a message of exactly 1 MiB is accepted.
func TestMessagesLargerThanTheBudget(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"12,000 words":             strings.Repeat("seven little words are said again here ", 1700) + "THE END",
		"1 MiB":                    strings.Repeat("y", 1<<20-len("THE END")) + "THE END",
		"unspaced Chinese, 300 KB": strings.Repeat("检查之前三号车间的水泵报告了压力异常", 5600) + "THE END",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := apptest.NewProvider(t, provider.Options{Window: 8192, Overcount: 1.15})
			h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 8192, 2048, p))
			id := apptest.NewSession(t, h.Client, core.Session{})
			apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "before"})
			got := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: content})
			all := apptest.ListMessages(t, h.Client, id)
			if all[2].Content != content {
				t.Errorf("got a message of %d bytes in the log, want the whole %d", len(all[2].Content), len(content))
			}
			shown := strings.TrimPrefix(got.Answer.Content, "answer to: ")
			if len(shown) >= len(content) || !strings.HasPrefix(content, shown[:20]) ||
				!strings.HasSuffix(shown, "THE END") || !strings.Contains(shown, string(got.Question.ID)) {
				t.Errorf("got the prompt %.100q … %q, want head and tail with a marker that names the message", shown, shown[max(0, len(shown)-60):])
			}
			if r := reported(t, h.Client, got.Run.ID); r.Coverage.Shortened != 1 || r.Used > r.Usable || r.Coverage.Lost != 0 {
				t.Errorf("got %+v, want one message shortened", r.Coverage)
			}
			apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "and after"})
			contextOf(t, h.Client, id)
		})
	}
}

// NUL becomes U+FFFD, and the metadata say so.
func TestMessageIsCleaned(t *testing.T) {
	t.Parallel()
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t))
	id := apptest.NewSession(t, h.Client, core.Session{})
	got := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "a\x00b", Metadata: []byte(`{"k": "v"}`)})
	if got.Question.Content != "a\uFFFDb" || string(got.Question.Metadata) != `{"k":"v","replaced_characters":1}` {
		t.Errorf("got %q with %s, want U+FFFD and a note", got.Question.Content, got.Question.Metadata)
	}
}

// Every row has an owner. Two owners do not see each other, and
// neither does somebody without a key.
func TestOwnersDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		h := apptest.New(t, url, func(c *config.Config) {
			c.Auth.Keys = []config.APIKey{
				{Name: "ann", Secret: config.NewSecret("secret-of-ann-1234")}, {Name: "bob", Secret: config.NewSecret("secret-of-bob-1234")},
			}
		})
		ann := h.NewClient("secret-of-ann-1234")
		id := apptest.NewSession(t, ann, core.Session{Title: "ann's own"})
		run := apptest.SendMessage(t, ann, core.SendMessage{SessionID: id, Content: "My name is Ann."}).Run
		for name, other := range map[string]*client.Client{"bob": h.NewClient("secret-of-bob-1234"), "without a key": h.Client} {
			sees(t, name, other, id, run.ID)
		}
		_, err := h.NewClient("wrong").Sessions(t.Context(), core.SessionQuery{})
		wantProblem(t, err, core.ErrUnauthorized, 401, "")
		if got := len(apptest.ListMessages(t, ann, id)); got != 2 {
			t.Errorf("got %d messages of ann's, want 2", got)
		}
	})
}

// sees wants nothing of ann's session to be seen or changed by another client.
func sees(t *testing.T, name string, c *client.Client, id core.SessionID, run core.RunID) {
	t.Helper()
	ctx := t.Context()
	list, err := c.Sessions(ctx, core.SessionQuery{Archived: true})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("%s: got %d sessions and %v, want none", name, len(list.Items), err)
	}
	title := "mine now"
	for what, call := range map[string]func() error{
		"session":   func() error { _, err := c.Session(ctx, id); return err },
		"messages":  func() error { _, err := c.Messages(ctx, id, core.MessageQuery{}); return err },
		"send":      func() error { _, err := c.SendAndWait(ctx, core.SendMessage{SessionID: id, Content: "hi"}); return err },
		"update":    func() error { _, err := c.UpdateSession(ctx, id, core.SessionPatch{Title: &title}); return err },
		"archive":   func() error { _, err := c.UpdateSession(ctx, id, core.SessionPatch{Archived: new(true)}); return err },
		"context":   func() error { _, err := c.Context(ctx, id); return err },
		"prompt":    func() error { _, err := c.Prompt(ctx, id); return err },
		"summarize": func() error { _, err := c.Summarize(ctx, id, ""); return err },
		"summaries": func() error { _, err := c.Summaries(ctx, id, core.PageQuery{}); return err },
		"summary":   func() error { _, err := c.Summary(ctx, id, 1); return err },
		"runs":      func() error { _, err := c.Runs(ctx, id, core.PageQuery{}); return err },
		"run":       func() error { _, err := c.Run(ctx, run); return err },
		"cancel":    func() error { _, err := c.CancelRun(ctx, run, false); return err },
		"feed": func() error {
			for _, err := range c.WatchSession(ctx, id, core.Cursor{}) {
				return err
			}
			return nil
		},
		"run's feed": func() error {
			for _, err := range c.WatchRun(ctx, run, core.Cursor{}) {
				return err
			}
			return nil
		},
	} {
		if err := call(); !errors.Is(err, core.ErrNotFound) {
			t.Errorf("%s, %s: got %v, want that it does not exist", name, what, err)
		}
	}
}

// The lists of sessions and messages have pages that neither repeat nor leave out.
func TestPages(t *testing.T) {
	t.Parallel()
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 8192, 2048, apptest.NewProvider(t, provider.Options{Window: 8192})))
	var want, got []string
	for i := range 7 {
		id := apptest.NewSession(t, h.Client, core.Session{Title: fmt.Sprint(i)})
		want = append([]string{string(id)}, want...)
	}
	q := core.SessionQuery{PageQuery: core.PageQuery{Limit: 3}}
	for {
		page, err := h.Sessions(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page.Items {
			got = append(got, string(s.ID))
		}
		if page.NextCursor == nil {
			break
		}
		q.Cursor = *page.NextCursor
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sessions, newest first (-want +got):\n%s", diff)
	}
}
