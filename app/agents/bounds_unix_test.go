//go:build unix

package agents_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"bobbin/app/agents"
)

// A pipe, a device, a schema of aliases of aliases and a file of faults are refused within
// bounds.
func TestFilesWithoutEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := agents.LoadAgentFile(pipe, known()); err == nil || err.Error() != pipe+": it is not a regular file; write the agent to one" {
		t.Errorf("a pipe: got %v", err)
	}
	if _, err := agents.LoadAgentFile(os.DevNull, known()); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("a device: got %v", err)
	}
	grows := "name: a\nresponse_format:\n  type: json_schema\n  schema:\n    a: &a [x, x, x, x, x, x, x, x]\n"
	for _, pair := range []string{"ab", "bc", "cd", "de", "ef", "fg", "gh", "hi"} {
		grows += "    " + pair[1:] + ": &" + pair[1:] + " [" + strings.Repeat("*"+pair[:1]+", ", 8) + "]\n"
	}
	if _, err := agents.ParseFile("a.yaml", grows, known()); err == nil || !strings.HasSuffix(err.Error(), "response_format.schema: the file has more than 2097152 bytes; make it smaller") {
		t.Errorf("a schema of aliases: got %v", err)
	}
	_, err := agents.ParseFile("a.yaml", "name: a\n"+strings.Repeat("? x\n", 1000), known())
	if got := strings.Split(err.Error(), "\n"); len(got) != 51 || got[50] != "a.yaml: there are 949 more faults" {
		t.Errorf("a file of faults: got %d lines, the last %q", len(got), got[len(got)-1])
	}
}
