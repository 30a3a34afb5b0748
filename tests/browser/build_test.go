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
	dist := filepath.Join(t.TempDir(), "dist")
	cmd := exec.CommandContext(t.Context(), npm, "run", "--silent", "bundle", "--", "--outDir", dist)
	cmd.Dir = source
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm run bundle: %v\n%s", err, out)
	}
	want, got := readFolder(t, dist), readFolder(t, committed)
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

// readFolder returns the files of a folder by their paths in it.
func readFolder(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files, root := map[string][]byte{}, os.DirFS(dir)
	must.Do(t, fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files[name], err = fs.ReadFile(root, name)
		}
		return err
	}))
	return files
}
