package dbtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// process is a process, told from others that get the same number later.
type process struct {
	pid   int
	start string // when it began; letters and digits
}

// String names the process: pid and start, with a dash between them.
func (p process) String() string { return fmt.Sprintf("%d-%s", p.pid, p.start) }

func parseProcess(s string) (process, bool) {
	pid, start, ok := strings.Cut(s, "-")
	n, err := strconv.Atoi(pid)
	return process{pid: n, start: start}, ok && err == nil
}

// alive reports whether the process still runs.
func (p process) alive() bool {
	start, _ := look(p.pid)
	return start == p.start
}

// runOwner is the process that the cluster lives as long as: the "go test" that
// started this binary, or the binary itself if something else did.
func runOwner() process {
	parent := os.Getppid()
	if start, name := look(parent); name == "go" || name == "go.exe" {
		return process{pid: parent, start: start}
	}
	return self()
}

// self is this process.
func self() process {
	start, _ := look(os.Getpid())
	return process{pid: os.Getpid(), start: start}
}

// look returns when a process began and the name of its program; both are empty
// if there is no such process.
func look(pid int) (start, name string) {
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
