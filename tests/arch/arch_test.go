package arch_test

import (
	"os"
	"strings"
	"testing"

	"bobbin/tests/arch"
)

// TestHouse judges the source of this module.
func TestHouse(t *testing.T) {
	t.Parallel()
	files, err := arch.Load("../..")
	if err != nil {
		t.Fatalf("load the source: %v", err)
	}
	if len(files) < 20 {
		t.Fatalf("got %d files, want the whole module: is the test in another folder now?", len(files))
	}
	for _, sentence := range append(arch.CheckImports(files), arch.CheckFiles(files)...) {
		t.Error(sentence)
	}
}

// What CI runs has one order.
func TestOrderOfTestsInCI(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"../../scripts/test", "../../.ci/run"} {
		script, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(script), "-shuffle=on") {
			t.Errorf("%s shuffles the tests: make explore does that, with a seed that repeats the order", name)
		}
	}
}
