package arch_test

import (
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
