//go:build linux || darwin || freebsd

package core_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// Root works in no folder of another user: its owner could have put links there.
func TestCheckOwner(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for _, path := range []string{folder, filepath.Join(folder, "none"), "/"} { // root's own, whoever this is
		compare.Error(t, path, nil, core.CheckOwner(path))
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can give a folder away")
	}
	must.Do(t, os.Chown(folder, 54321, -1))
	err := core.CheckOwner(folder)
	if !errors.Is(err, core.ErrForbidden) || !strings.Contains(err.Error(), "54321") || !strings.Contains(err.Error(), "sudo -u 54321") || !strings.Contains(err.Error(), "systemd-run") {
		t.Errorf("got %v, want who owns it and what to do", err)
	}
}
