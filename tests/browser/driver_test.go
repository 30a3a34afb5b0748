// Package browser_test drives Debian's Chromium over the page of a Bobbin in a process of its own, whose
// model is scripted: what a person sees, does with the keyboard alone, and what hostile text cannot do.
package browser_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/must"
	"bobbin/tests/process"
)

// den holds the files and processes of the tests, browser the one Chromium that they share.
var (
	den     *process.Den
	browser driver
)

func TestMain(m *testing.M) { process.Main(m, "browser", &den, browser.close) }

// driver is the script that drives Chromium: a JSON line for each case that it is to play, and one for
// how it went. Safe for concurrent use.
type driver struct {
	once sync.Once
	in   io.WriteCloser
	cmd  *exec.Cmd

	mu      sync.Mutex
	last    int                   // guarded by mu
	waiting map[int]chan<- played // by the case's number; nil when the script has ended; guarded by mu
	failure error                 // of the start
}

// played is how a case went.
type played struct {
	ID     int
	Error  string
	Result json.RawMessage
}

func (d *driver) start(t *testing.T) {
	t.Helper()
	node, chromium := process.FindBrowser(t, "js")
	d.once.Do(func() {
		d.cmd = exec.Command(node, "drive.mjs") //nolint:noctx // ends with its input, after all tests
		d.cmd.Dir, d.cmd.Stderr = "js", os.Stderr
		d.cmd.Env = append(os.Environ(), "CHROMIUM="+chromium, "HOME="+den.Dir, "REPORT="+reportFolder())
		out, err := d.cmd.StdoutPipe()
		if err == nil {
			d.in, err = d.cmd.StdinPipe()
		}
		if err == nil {
			err = d.cmd.Start()
		}
		d.failure, d.waiting = err, map[int]chan<- played{}
		go d.read(out)
	})
	if d.failure != nil {
		t.Fatal(d.failure)
	}
}

// read hands on how the cases went.
func (d *driver) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var p played
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			continue // no line of a case
		}
		d.mu.Lock()
		if c := d.waiting[p.ID]; c != nil {
			c <- p
			delete(d.waiting, p.ID)
		}
		d.mu.Unlock()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, c := range d.waiting {
		c <- played{ID: id, Error: "the script has ended"}
	}
	d.waiting = nil
}

func (d *driver) close() {
	if d.in != nil {
		_ = d.in.Close()
		_ = d.cmd.Wait() // how it ended says nothing about the tests
	}
}

// send gives the script a case and returns where its end comes.
func (d *driver) send(flow, name string, args map[string]any) (<-chan played, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting == nil {
		return nil, errors.New("the script has ended")
	}
	d.last++
	end := make(chan played, 1)
	d.waiting[d.last] = end
	line, err := json.Marshal(map[string]any{"id": d.last, "flow": flow, "name": name, "args": args})
	if err == nil {
		_, err = d.in.Write(append(line, '\n'))
	}
	return end, err
}

// play plays a case of js/<flow>.mjs with a Bobbin and reads its figures into result, unless it is nil.
func (b *bobbin) play(t *testing.T, flow, name string, args map[string]any, result any) {
	t.Helper()
	browser.start(t)
	all := map[string]any{"url": b.URL, "control": b.control.URL, "long": apptest.IsLong()}
	for k, v := range args {
		all[k] = v
	}
	end, err := browser.send(flow, name, all)
	must.Do(t, err)
	p := <-end
	compare.Equal(t, fmt.Sprintf("%s, %s", flow, name), "", p.Error)
	if result != nil && len(p.Result) > 0 {
		must.Do(t, json.Unmarshal(p.Result, result))
	}
}

// reportFolder is where make show-page wants its pictures; empty = none are taken.
func reportFolder() string {
	if dir := os.Getenv("BOBBIN_PAGE_REPORT"); dir != "" {
		abs, _ := filepath.Abs(dir) // fails only without a working directory
		return abs
	}
	return ""
}

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
