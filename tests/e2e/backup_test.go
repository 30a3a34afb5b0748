package e2e_test

import (
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	operations "bobbin/app/api/ops"
	"bobbin/app/core"
	"bobbin/app/ops"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// What was acknowledged before a backup began is in it, though others wrote on while it
// was made; a Bobbin on the copy is sound, and its conversations go on.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		model := apptest.WithModel("echo", 8192, 1024, apptest.NewProvider(t, provider.Options{}))
		h := apptest.New(t, url, model)
		quiet := apptest.NewSession(t, h.Client, operations.NewSession{})
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: quiet, Content: "Remember the harpsichord."})
		ctx, stop := context.WithCancel(t.Context())
		answers := make(chan core.Message, 10_000)
		var talking sync.WaitGroup
		for who := range 4 {
			id := apptest.NewSession(t, h.Client, operations.NewSession{})
			talking.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					a, err := apptest.SendAndWait(ctx, h, core.SendMessage{SessionID: id, Content: fmt.Sprintf("question %d of %d", n, who)})
					if ctx.Err() == nil && (err != nil || a.Message == nil) {
						t.Errorf("question %d of %d: %v", n, who, err)
						stop()
					} else if ctx.Err() == nil {
						answers <- *a.Message
					}
				}
			})
		}
		await := func(n int) (list []core.Message) {
			for range n {
				select {
				case m := <-answers:
					list = append(list, m)
				case <-ctx.Done():
					t.Fatal("the conversations have ended")
				}
			}
			return list
		}
		known := await(20)
		copied := backUp(t, h, url)
		await(len(answers) + 4) // it went on
		stop()
		talking.Wait()
		want := apptest.ListMessages(t, h.Client, quiet)
		h.Stop()

		restored := apptest.New(t, copied, model)
		logs := map[core.SessionID][]core.Message{}
		for _, answer := range known {
			if logs[answer.SessionID] == nil {
				logs[answer.SessionID] = apptest.ListMessages(t, restored.Client, answer.SessionID)
			}
			if !slices.ContainsFunc(logs[answer.SessionID], func(m core.Message) bool { return m.ID == answer.ID && m.Content == answer.Content }) {
				t.Errorf("message %s (%q) of before the backup is not there", answer.ID, answer.Content)
			}
		}
		if got := apptest.ListMessages(t, restored.Client, quiet); len(got) != len(want) || got[1].Content != want[1].Content {
			t.Errorf("got %d messages of the quiet session, want the %d of before", len(got), len(want))
		}
		apptest.SendMessage(t, restored.Client, core.SendMessage{SessionID: quiet, Content: "And go on."})
		checkup := ops.Doctor(t.Context(), ops.DoctorOptions{Config: restored.Config, Logger: slog.New(slog.DiscardHandler)})
		for _, f := range checkup.Findings {
			if (f.Check == "database" || f.Check == "migrations") && f.Status != ops.VerdictOK {
				t.Errorf("doctor on the copy: %+v", f)
			}
		}
	})
}

// backUp makes a backup with the tools that operators have, while the house works, and
// returns the URL of what was restored from it.
func backUp(t *testing.T, h *apptest.Bobbin, url string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "backup")
	if strings.HasPrefix(url, "sqlite://") {
		must.Get(ops.Backup(t.Context(), h.Config, slog.New(slog.DiscardHandler), file, "test"))(t)
		return "sqlite://" + file
	}
	empty := dbtest.PostgresURL(t)
	for _, args := range [][]string{
		{dbtest.Program(t, "pg_dump"), "--format=custom", "--no-owner", "--file=" + file, url},
		{dbtest.Program(t, "pg_restore"), "--no-owner", "--exit-on-error", "--dbname=" + empty, file},
	} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", filepath.Base(args[0]), err, out)
		}
	}
	return empty
}
