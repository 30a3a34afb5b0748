package e2e_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bobbin/app"
	"bobbin/app/api/handlers"
	operations "bobbin/app/api/ops"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/ops"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// One process works on a SQLite file, whatever data folders are named and by whatever
// path; the second one says which process that is. Who only reads it may.
func TestOneProcessOnAFile(t *testing.T) {
	t.Parallel()
	url := dbtest.MigratedSQLiteURL(t)
	h := apptest.New(t, url)
	file := strings.TrimPrefix(url, "sqlite://")
	folder := filepath.Join(t.TempDir(), "link")
	must.Do(t, os.Symlink(filepath.Dir(file), folder))
	quiet := slog.New(slog.DiscardHandler)
	for _, other := range []string{url, "sqlite://" + filepath.Join(folder, filepath.Base(file))} {
		cfg := h.Config
		cfg.DataDir, cfg.Database.URL = t.TempDir(), config.NewSecretURL(other)
		_, started := app.New(t.Context(), cfg, handlers.Build{}, quiet)
		if !errors.Is(started, core.ErrConflict) || !strings.Contains(started.Error(), fmt.Sprintf("process %d uses the database", os.Getpid())) {
			t.Errorf("got %v, want a conflict that names the process", started)
		}
		compare.Error(t, "backup", nil, compare.ErrorOf(ops.Backup(t.Context(), cfg, quiet, filepath.Join(cfg.DataDir, "copy.db"), "test")))
		for _, f := range ops.Doctor(t.Context(), ops.DoctorOptions{Config: cfg, Logger: quiet}).Findings {
			if f.Check == "database" && f.Status != ops.VerdictOK {
				t.Errorf("doctor: got %+v, want the database sound", f)
			}
		}
	}
	h.Restart() // it may come back to its own file
	apptest.NewSession(t, h.Client, operations.NewSession{})
}
