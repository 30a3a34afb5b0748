package dbtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"bobbin/tests/must"
)

// process identifies a process, even if another gets the same number later.
type process struct {
	pid   int
	start string // when it began; letters and digits
}

// String returns pid and start, with a dash between them.
func (p process) String() string { return fmt.Sprintf("%d-%s", p.pid, p.start) }

func parseProcess(s string) (process, bool) {
	pid, start, ok := strings.Cut(s, "-")
	n, err := strconv.Atoi(pid)
	return process{pid: n, start: start}, ok && err == nil
}

// isAlive reports whether the process still runs.
func (p process) isAlive() bool {
	start, _ := processInfo(p.pid)
	return start == p.start
}

// runOwner is the process whose lifetime the cluster shares: the "go test" that started
// this binary, or else the binary itself.
func runOwner() process {
	parent := os.Getppid()
	if start, name := processInfo(parent); name == "go" || name == "go.exe" {
		return process{pid: parent, start: start}
	}
	return thisProcess()
}

// thisProcess is this process.
func thisProcess() process {
	start, _ := processInfo(os.Getpid())
	return process{pid: os.Getpid(), start: start}
}

// processInfo returns the start time of a process and the name of its program; both are
// empty if there is no such process.
func processInfo(pid int) (start, name string) {
	if raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		// pid (name) state ppid … starttime, the 22nd field; the name may hold anything.
		head, tail, _ := strings.Cut(string(raw), "(")
		end := strings.LastIndexByte(tail, ')')
		if head == "" || end < 0 {
			return "", ""
		}
		fields := strings.Fields(tail[end+1:])
		if len(fields) < 20 || fields[0] == "Z" {
			return "", ""
		}
		return fields[19], tail[:end]
	}
	if _, err := os.Stat("/proc/self"); err == nil {
		return "", ""
	}
	out, err := exec.Command("ps", "-o", "lstart=,comm=", "-p", strconv.Itoa(pid)).Output()
	fields := strings.Fields(string(out))
	if err != nil || len(fields) < 6 { // Fri Nov 21 05:30:00 2026 /path/to/go
		return "", ""
	}
	return strings.ReplaceAll(strings.Join(fields[:5], ""), ":", ""), filepath.Base(fields[5])
}

// Program returns the path of one of PostgreSQL's programs, such as pg_dump. Where it
// is not installed the test is skipped, unless PostgreSQL is required.
func Program(t testing.TB, name string) string {
	t.Helper()
	if bin, err := findPrograms(); err == nil {
		if path := filepath.Join(bin, name); isExecutable(path) {
			return path
		}
	}
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) && !strings.Contains(os.Getenv(requireVariable), "postgres") {
		t.Skipf("%s is not installed: it comes with PostgreSQL", name)
	}
	must.Do(t, err)
	return path
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}
