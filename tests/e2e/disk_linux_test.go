package e2e_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"bobbin/app"
	"bobbin/app/api/handlers"
	operations "bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/quota"
	"bobbin/app/ops"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
)

// smallDisk returns a folder on a file system of its own of that many bytes. Only root
// may make one.
func smallDisk(t *testing.T, bytes int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() {
		compare.Error(t, "unmount", nil, syscall.Unmount(dir, syscall.MNT_DETACH))
	})
	return dir
}

// fillDisk takes all the room of the disk but so many bytes, until empty is called.
func fillDisk(t *testing.T, dir string, but int64) (empty func()) {
	t.Helper()
	name := filepath.Join(dir, "ballast")
	f := must.Get(os.Create(name))(t)
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	if end, err := f.Seek(0, io.SeekEnd); err != nil || f.Truncate(end-but) != nil {
		t.Fatalf("make room: %v", err)
	}
	_ = f.Close() // what counts is written
	return func() {
		must.Do(t, os.Remove(name))
	}
}

// A disk that is full loses nothing and fails no run: what cannot be stored is refused,
// what was accepted waits for room. One run has its answer on the way when the disk fills
// up, the other one a summary, without which it cannot go on.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 8<<20)
	arrived, open := make(chan provider.Point, 2), make(chan struct{})
	p := apptest.NewProvider(t, provider.Options{At: func(at provider.Point, a provider.Asked) {
		if at == provider.PointSummary || at == provider.PointStream && strings.Contains(a.Question, "hold") {
			arrived <- at
			<-open
		}
	}})
	release := sync.OnceFunc(func() { close(open) })
	t.Cleanup(release)
	h := apptest.New(t, "sqlite://"+filepath.Join(disk, "bobbin.db"), apptest.WithModel("house", 32_000, 2048, p), apptest.WithModel("tiny", 3000, 500, p))
	long := apptest.NewSession(t, h.Client, operations.NewSession{})
	for range 4 {
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: long, Content: apptest.NewWriter(7).Sentences(60)})
	}
	var runs []core.RunID
	for _, m := range []core.SendMessage{
		{SessionID: apptest.NewSession(t, h.Client, operations.NewSession{}), Content: "hold this"},
		{SessionID: long, Content: "and now in short", Model: "tiny"},
	} {
		run := must.Get(apptest.SendAsync(t.Context(), h, m))(t)
		runs = append(runs, run.ID)
		<-arrived
	}
	empty := fillDisk(t, disk, 0)
	refused(t, h, "disk_full")
	awaitReadiness(t, h, http.StatusServiceUnavailable, `"field":"database","detail":"the disk of the database is full`)
	release()
	process.Await(t, "the log", func() bool {
		return strings.Contains(h.Log.String(), "requeueing run") && strings.Contains(h.Log.String(), "retrying")
	})
	for _, id := range runs {
		if run, err := client.Call(t.Context(), h, operations.GetRun, operations.InRun{RunID: id}); err != nil || run.Status.Ended() {
			t.Errorf("got %s, %v while the disk is full, want the run to wait", run.Status, err)
		}
	}
	empty()
	awaitReadiness(t, h, http.StatusOK, `"database":"ok"`)
	for _, id := range runs {
		compare.Equal(t, "run", core.RunSucceeded, apptest.ReadTurn(t, h.WatchRun(t.Context(), id, core.Cursor{})).Run.Status)
	}
}

// While a twentieth of the disk, here a tenth, is not free, what brings much at once is refused, and messages are not.
func TestDiskThatIsNearlyFull(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 64<<20)
	h := apptest.New(t, "sqlite://"+filepath.Join(disk, "bobbin.db"))
	id := apptest.NewSession(t, h.Client, operations.NewSession{})
	fillDisk(t, disk, 4<<20)
	_, forked := client.Call(t.Context(), h, operations.ForkSession, core.ForkSession{SessionID: id})
	_, imported := h.ImportMessages(t.Context(), core.ImportMessages{SessionID: id, Format: core.ImportLines, Body: strings.NewReader(`{"role":"user","content":"x"}`)})
	wantRefused(t, forked, http.StatusServiceUnavailable, quota.CodeStorageFull)
	wantRefused(t, imported, http.StatusServiceUnavailable, quota.CodeStorageFull)
	apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "hello"})
}

// A start on a full disk says so, and doctor too. With room again it goes on where it was.
func TestStartOnFullDisk(t *testing.T) {
	t.Parallel()
	for _, left := range []int64{0, 100 << 10, 400 << 10} { // for nothing, for some of the schema, for most of it
		t.Run(fmt.Sprint(left), func(t *testing.T) {
			t.Parallel()
			disk := smallDisk(t, 8<<20)
			empty := fillDisk(t, disk, left)
			cfg := config.Default()
			cfg.Addr, cfg.DataDir = "127.0.0.1:0", filepath.Join(disk, "data")
			url := "sqlite://" + filepath.Join(cfg.DataDir, "bobbin.db")
			cfg.Database.URL = config.NewSecretURL(url)
			_, err := app.New(t.Context(), cfg, handlers.Build{}, slog.New(slog.DiscardHandler))
			var shown *core.Error
			if !errors.As(err, &shown) || !strings.HasPrefix(shown.Message, "the disk of the data folder or of the database is full") {
				t.Errorf("got %v, want that the disk is full", err)
			}
			compare.Contains(t, "doctor", "{disk fail 0.0 GiB free make disk space", fmt.Sprint(ops.Doctor(t.Context(), ops.DoctorOptions{Config: cfg, Logger: slog.New(slog.DiscardHandler)}).Findings))
			empty()
			h := apptest.New(t, url, func(c *config.Config) { c.DataDir = cfg.DataDir })
			apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: apptest.NewSession(t, h.Client, operations.NewSession{}), Content: "hello"})
		})
	}
}
