package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// FindNode returns the path of Node. Without it the test is skipped.
func FindNode(t testing.TB) string {
	t.Helper()
	noteSource()
	node, err := exec.LookPath("node")
	if err != nil {
		skipTest(t, "node", "node is missing; install Debian's package nodejs")
	}
	return node
}

// FindNodeClients returns the path of Node, which must be 20 or later and have the clients of
// npm that the package locks. Without them the test is skipped.
func FindNodeClients(t testing.TB) string {
	t.Helper()
	node := FindNode(t)
	version, err := exec.CommandContext(t.Context(), node, "--version").Output()
	major, _, _ := strings.Cut(strings.TrimPrefix(string(version), "v"), ".")
	if n, _ := strconv.Atoi(major); err != nil || n < 20 { // Debian 12 has 18
		t.Skip("node is older than 20, which the clients need")
	}
	requirePackages(t, "node", ".")
	return node
}

// FindPageTools returns the path of npm, for the packages of the web page's source in the folder. Without
// them the test is skipped.
func FindPageTools(t testing.TB, folder string) string {
	t.Helper()
	FindNode(t)
	npm, err := exec.LookPath("npm")
	if err != nil {
		skipTest(t, "browser", "npm is missing; install Debian's package npm")
	}
	requirePackages(t, "browser", folder)
	return npm
}

// FindBrowser returns the paths of Node, for scripts in the folder, and of Chromium. Without them the test is skipped.
func FindBrowser(t testing.TB, folder string) (node, chromium string) {
	t.Helper()
	node = FindNode(t)
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		skipTest(t, "browser", "chromium is missing; install Debian's package chromium")
	}
	requirePackages(t, "browser", folder)
	return node, chromium
}

// requirePackages skips the test unless the packages that the folder locks are installed.
func requirePackages(t testing.TB, requirement, folder string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(folder, "node_modules/.package-lock.json")); err != nil {
		skipTest(t, requirement, "packages of npm are missing; run scripts/clients")
	}
}

// FindPythonClients returns the path of the Python that has the clients of PyPI that the package locks.
// Without it the test is skipped.
func FindPythonClients(t testing.TB) string {
	t.Helper()
	if _, err := os.Stat("venv/installed"); err != nil {
		skipTest(t, "python", "the clients of PyPI are missing; run scripts/clients python")
	}
	return "venv/bin/python"
}

// skipTest skips the test, or fails it if BOBBIN_TEST_REQUIRE demands what is missing.
func skipTest(t testing.TB, requirement, reason string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("BOBBIN_TEST_REQUIRE"), ","), requirement) {
		t.Fatalf("%s, and BOBBIN_TEST_REQUIRE demands it", reason)
	}
	t.Skip(reason)
}
