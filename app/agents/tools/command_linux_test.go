package tools_test

import (
	"strings"
	"testing"

	"bobbin/app/core"
)

// A command has as much memory as its definition says.
func TestCommandMemory(t *testing.T) {
	t.Parallel()
	const script = "x=0123456789abcdef\nsleep 0.2\nfor i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22; do x=$x$x; done\necho ${#x}\n"
	if got, err := callTool(t, command(t, script, core.ToolDefinition{Env: []string{"PATH"}, MaxMemory: 512}), ""); err != nil || strings.TrimSpace(got) != "67108864" {
		t.Fatalf("with enough memory: got %q, %v", got, err)
	}
	if got, err := callTool(t, command(t, script, core.ToolDefinition{Env: []string{"PATH"}, MaxMemory: 16}), ""); err == nil {
		t.Errorf("got %q with too little memory", got)
	}
}
