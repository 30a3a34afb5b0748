package e2e_test

import (
	"errors"
	"strings"
	"testing"

	"bobbin/app/client"
	"bobbin/app/core"
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

// wantProblem wants an error of the kind and status with the words in it.
func wantProblem(t testing.TB, err error, kind error, status int, words string) {
	t.Helper()
	var problem *client.ProblemError
	if !errors.As(err, &problem) || !errors.Is(err, kind) || problem.Status != status || !strings.Contains(err.Error(), words) {
		t.Errorf("got the error %v, want %v (%d) with %q in it", err, kind, status, words)
	}
}
