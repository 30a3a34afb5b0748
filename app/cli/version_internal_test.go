package cli

import (
	"os"
	"strings"
	"testing"
)

// `make build` says which version it built, by the variable that build reads, and leaves
// out what debuggers need.
//
// Finding: users-A9
func TestVersion(t *testing.T) { //nolint:paralleltest // sets the linker's variable
	version = "v1.2.3"
	defer func() { version = "" }()
	if got := readBuild().Version; got != "v1.2.3" {
		t.Errorf("got version %q, want the linker's", got)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(makefile), "-ldflags '-s -w -X bobbin/app/cli.version=$(version)'") {
		t.Error("make build does not set the version, or does not strip")
	}
}
