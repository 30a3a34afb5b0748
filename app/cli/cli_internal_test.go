package cli

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// The version stands in one place, from which a release has it, and what is built for others has no
// paths, nothing for debuggers and no codec that nobody uses.
func TestVersion(t *testing.T) {
	t.Parallel()
	got := readBuild().Version
	compare.Equal(t, "version", []any{version, true}, []any{got, strings.HasPrefix(got, "0.")})
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
		text := must.Get(os.ReadFile("../../" + file))(t)
		for _, flags := range want {
			compare.Contains(t, fmt.Sprintf("%s lacks %s", file, flags), flags, string(text))
		}
	}
}
