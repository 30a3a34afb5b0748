package browser_test

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"bobbin/tests/must"
	"bobbin/tests/process"
)

const (
	source    = "../../app/web/ui"
	committed = "../../app/web/dist"
)

// What is served is what the source says: building it again gives the committed files, byte for byte.
// scripts/lint checks its types.
func TestBuild(t *testing.T) {
	t.Parallel()
	npm := process.FindPageTools(t, source)
	dir := t.TempDir()
	ui := copySource(t, dir)
	cmd := exec.CommandContext(t.Context(), npm, "run", "--silent", "bundle")
	cmd.Dir = ui
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm run bundle: %v\n%s", err, out)
	}
	want, got := readFolder(t, filepath.Join(dir, "dist")), readFolder(t, committed)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !bytes.Equal(got[name], want[name]) {
			t.Errorf("app/web/dist/%s is not what the source builds: run npm run build in app/web/ui", name)
		}
		delete(got, name)
	}
	for name := range got {
		t.Errorf("app/web/dist/%s is not built by the source", name)
	}
}

// copySource copies the page's source, so that what is built lies beside the copy.
func copySource(t *testing.T, dir string) string {
	t.Helper()
	packages := must.Get(filepath.Abs(filepath.Join(source, "node_modules")))(t)
	ui := filepath.Join(dir, "ui")
	for name, data := range readFolder(t, source) {
		file := filepath.Join(ui, name)
		must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must.Do(t, os.WriteFile(file, data, 0o600))
	}
	must.Do(t, os.Symlink(packages, filepath.Join(ui, "node_modules")))
	return ui
}

// readFolder returns the files of a folder by their paths in it, without packages and what is made of the
// API's document.
func readFolder(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if err == nil && entry.Name() == "node_modules" {
				return filepath.SkipDir
			}
			return err
		}
		if entry.Name() == "schema.ts" {
			return nil
		}
		name, err := filepath.Rel(dir, path)
		if err == nil {
			files[name], err = os.ReadFile(path)
		}
		return err
	})
	must.Do(t, err)
	return files
}
