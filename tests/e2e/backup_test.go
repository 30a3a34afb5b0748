package e2e_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/ops"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// What was acknowledged before a backup began is in it, though others wrote on while it
// was made; a Bobbin on the copy is sound, and its conversations go on.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		model := apptest.WithModel("echo", 8192, 1024, apptest.NewProvider(t, provider.Options{}))
		h := apptest.New(t, url, model)
		quiet := apptest.NewSession(t, h.Client, core.Session{})
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: quiet, Content: "Remember the harpsichord."})
		load := newLoad(t, h.Client, 4)
		load.until(20)
		known := load.acknowledged()
		copied := backUp(t, h, url)
		load.until(len(known) + 4) // it went on
		load.stop()
		want := apptest.ListMessages(t, h.Client, quiet)
		h.Stop()

		restored := apptest.New(t, copied, model)
		logs := map[core.SessionID][]core.Message{}
		for at, content := range known {
			if logs[at.session] == nil {
				logs[at.session] = apptest.ListMessages(t, restored.Client, at.session)
			}
			if !slices.ContainsFunc(logs[at.session], func(m core.Message) bool { return m.ID == at.message && m.Content == content }) {
				t.Errorf("message %s (%q) of before the backup is not there", at.message, content)
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
		if _, err := ops.Backup(t.Context(), h.Config, slog.New(slog.DiscardHandler), file, "test"); err != nil {
			t.Fatal(err)
		}
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

// inSession is where a message is.
type inSession struct {
	session core.SessionID
	message core.MessageID
}

// load is conversations that go on and on.
type load struct {
	t      *testing.T
	cancel context.CancelFunc
	ended  sync.WaitGroup

	mu    sync.Mutex
	more  *sync.Cond
	known map[inSession]string // the contents of questions and answers; guarded by mu
}

// newLoad begins n conversations.
func newLoad(t *testing.T, c *client.Client, n int) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{t: t, cancel: cancel, known: map[inSession]string{}}
	l.more = sync.NewCond(&l.mu)
	for who := range n {
		id := apptest.NewSession(t, c, core.Session{})
		l.ended.Go(func() { l.talk(ctx, c, id, who) })
	}
	t.Cleanup(l.stop)
	return l
}

func (l *load) talk(ctx context.Context, c *client.Client, id core.SessionID, who int) {
	for n := 0; ctx.Err() == nil; n++ {
		a, err := c.SendAndWait(ctx, core.SendMessage{SessionID: id, Content: fmt.Sprintf("question %d of %d", n, who)})
		if ctx.Err() != nil {
			return
		}
		if err != nil || a.Message == nil {
			l.t.Errorf("question %d of %d: %v", n, who, err)
			l.more.Broadcast()
			return
		}
		l.mu.Lock()
		l.known[inSession{id, a.Message.ID}] = a.Message.Content
		l.more.Broadcast()
		l.mu.Unlock()
	}
}

// until waits for n answers in all.
func (l *load) until(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.known) < n && !l.t.Failed() {
		l.more.Wait()
	}
}

// acknowledged returns the answers that came so far.
func (l *load) acknowledged() map[inSession]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := make(map[inSession]string, len(l.known))
	for id, content := range l.known {
		known[id] = content
	}
	return known
}

// stop ends the conversations.
func (l *load) stop() {
	l.cancel()
	l.ended.Wait()
}

// A backup is whole and checked, for its owner only, writes over nothing, and leaves
// nothing behind where it fails.
func TestBackupFile(t *testing.T) {
	t.Parallel()
	h := apptest.New(t, dbtest.SQLiteURL(t))
	apptest.NewSession(t, h.Client, core.Session{})
	dir := t.TempDir()
	file := filepath.Join(dir, "copy.db")
	backup := func(file string) error {
		_, err := ops.Backup(t.Context(), h.Config, slog.New(slog.DiscardHandler), file, "test")
		return err
	}
	if err := backup(file); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() == 0 {
		t.Errorf("got %v, %v, want a file that only its owner reads", info, err)
	}
	if err := backup(file); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("over a file: got %v, want that it exists", err)
	}
	if err := backup(filepath.Join(dir, "nowhere", "copy.db")); err == nil {
		t.Error("into a folder that does not exist: got no error")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v, want the backup alone", entries, err)
	}
	other := h.Config
	other.Database.URL = config.NewSecretURL("sqlite://" + filepath.Join(dir, "none.db"))
	if _, err := ops.Backup(t.Context(), other, slog.New(slog.DiscardHandler), filepath.Join(dir, "b"), "test"); err == nil {
		t.Error("of a database that is not there: got no error")
	}
}
