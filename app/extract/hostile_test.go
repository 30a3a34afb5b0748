package extract_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sort"
	"strings"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/attach"
	"bobbin/app/extract"
	"bobbin/tests/documents"
)

// kinds are the media types of samples.
func kinds() map[string]string {
	return map[string]string{"pdf": attach.PDF, "docx": attach.Word, "xlsx": attach.Excel, "pptx": attach.PowerPoint}
}

// What hostile documents may take. The limits are those of the process; the rest is the
// program itself, and a machine that is busy.
const (
	mostText   = 1<<20 + 4096
	mostMemory = 512<<20 + 128<<20
	mostCPU    = 23 * time.Second
)

// Nothing that a document holds crashes the server, hangs it, or takes more memory, time
// and text than a document may: BOBBIN_TEST_LONG=1 reads 200, else those that are known
// and few others.
func TestHostileDocuments(t *testing.T) {
	t.Parallel()
	n, reader, long := 70, newReader(t), os.Getenv("BOBBIN_TEST_LONG") != ""
	if long {
		n = 200
	}
	var taken, refused int
	var costs []cost
	for _, s := range documents.Hostile(n) {
		if s.Slow && !long {
			continue
		}
		kind, data := kinds()[s.Kind], s.Make()
		c := measure(t, s.Name, kind, data)
		costs = append(costs, c)
		if c.memory > mostMemory || c.cpu > mostCPU {
			t.Errorf("%s (%s): %d MiB and %s of CPU", s.Name, s.Kind, c.memory>>20, c.cpu)
		}
		if s.Slow { // and was read to its limits
			continue
		}
		text, ok, err := reader.Read(t.Context(), kind, data)
		switch {
		case ok && err == nil && len(text.Text) <= mostText:
			taken++
		case errors.Is(err, core.ErrInvalid):
			refused++
		default:
			t.Errorf("%s (%s): got %d bytes, %v, %v", s.Name, s.Kind, len(text.Text), ok, err)
		}
	}
	sort.Slice(costs, func(i, j int) bool { return costs[i].cpu > costs[j].cpu })
	t.Logf("%d hostile documents: of those that are read quickly %d were read, in part or whole, %d refused", len(costs), taken, refused)
	for _, c := range costs[:5] {
		t.Logf("  most CPU: %-40s %6.2f s, %d MiB", c.name, c.cpu.Seconds(), c.memory>>20)
	}
	sort.Slice(costs, func(i, j int) bool { return costs[i].memory > costs[j].memory })
	for _, c := range costs[:5] {
		t.Logf("  most memory: %-37s %6.2f s, %d MiB", c.name, c.cpu.Seconds(), c.memory>>20)
	}
}

// cost is what the reading of a document took.
type cost struct {
	name   string
	cpu    time.Duration
	memory int64 // bytes
}

// measure reads a document in a process as the Reader does, and returns what it took.
func measure(t *testing.T, name, kind string, data []byte) cost {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // as the Reader does
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], extract.Command, kind)
	var out bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stdout = []string{"GOMAXPROCS=1", "GOTRACEBACK=none"}, bytes.NewReader(data), &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ends is the Reader's matter
		close(ended)
	}()
	memory := int64(0)
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case <-ended:
			return cost{name, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), memory}
		case <-tick.C:
			memory = max(memory, peak(cmd.Process.Pid))
		}
	}
}

// peak returns the maximum memory of a process until now, where the system reports it.
func peak(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, line, _ := strings.Cut(string(status), "VmHWM:")
	kib := int64(0)
	_, _ = fmt.Sscan(line, &kib)
	return kib << 10
}
