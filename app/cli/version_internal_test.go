package cli

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The version stands in one place, from which a release has it, and what is built for others has no
// paths, nothing for debuggers and no codec that nobody uses.
func TestVersion(t *testing.T) {
	t.Parallel()
	if got := readBuild().Version; got != version || !strings.HasPrefix(got, "0.") {
		t.Errorf("got version %q, want %q", got, version)
	}
	found, err := exec.CommandContext(t.Context(), "sh", "-c", `cd ../.. && eval "$(grep '^version=' scripts/release)" && printf %s "$version"`).Output()
	if err != nil || string(found) != version {
		t.Errorf("scripts/release finds the version %q, %v, want %q", found, err, version)
	}
	for file, want := range map[string][]string{
		"Makefile":          {"-trimpath -tags=nomsgpack", "CGO_ENABLED=0 go build -ldflags '-s -w'"},
		"scripts/release":   {"CGO_ENABLED=0", "go build -trimpath -tags nomsgpack -ldflags '-s -w'"},
		"scripts/test":      {"-trimpath -tags=nomsgpack"},
		"deploy/Dockerfile": {`CGO_ENABLED=0 go build -tags nomsgpack -trimpath -ldflags="-s -w"`},
	} {
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, flags := range want {
			if !strings.Contains(string(text), flags) {
				t.Errorf("%s lacks %s", file, flags)
			}
		}
	}
}
