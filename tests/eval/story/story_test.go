package story_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"bobbin/app/eval"
	"bobbin/tests/eval/recall"
	"bobbin/tests/eval/story"
)

var update = flag.Bool("update", false, "rewrite the samples")

// folder holds the samples that the program embeds.
var folder = filepath.Join("..", "..", "..", "app", "eval", "data")

// The embedded samples are what the generator writes, byte for byte, every time.
func TestSamplesAreGenerated(t *testing.T) {
	t.Parallel()
	again := story.Samples()
	for i, s := range story.Samples() {
		file := filepath.Join(folder, s.Name+".jsonl")
		if *update {
			if err := os.WriteFile(file, s.Data, 0o644); err != nil { //nolint:gosec // part of the source
				t.Fatal(err)
			}
			continue
		}
		_, got, err := eval.Get(s.Name)
		if err != nil || !bytes.Equal(got, s.Data) {
			t.Errorf("%s is not what the generator writes (%v); write it with: make samples", file, err)
		}
		if !bytes.Equal(again[i].Data, s.Data) {
			t.Errorf("sample %s: got other bytes the second time, want the same", s.Name)
		}
	}
	if file := filepath.Join("..", "recall", "sample.json"); *update {
		if err := os.WriteFile(file, story.Recall(), 0o644); err != nil { //nolint:gosec // part of the source
			t.Fatal(err)
		}
	} else if !bytes.Equal(recall.Sample, story.Recall()) {
		t.Errorf("%s is not what the generator writes; write it with: make samples", file)
	}
	if len(again) != len(eval.List()) {
		t.Errorf("got %d samples generated and %d listed, want the same", len(again), len(eval.List()))
	}
}
