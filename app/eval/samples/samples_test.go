package samples_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/eval/samples"
	"bobbin/app/eval/samples/story"
)

var update = flag.Bool("update", false, "write the samples anew")

// The samples are what the generator makes, byte for byte, each time.
func TestSamplesAreGenerated(t *testing.T) {
	t.Parallel()
	again := story.Samples()
	for i, s := range story.Samples() {
		file := filepath.Join("data", s.Name+".jsonl")
		if *update {
			if err := os.WriteFile(file, s.Data, 0o644); err != nil { //nolint:gosec // part of the source
				t.Fatal(err)
			}
			continue
		}
		_, got, err := samples.Get(s.Name)
		if err != nil || !bytes.Equal(got, s.Data) {
			t.Errorf("%s is not what the generator makes (%v); write it with: go test ./app/eval/samples -update", file, err)
		}
		if !bytes.Equal(again[i].Data, s.Data) {
			t.Errorf("sample %s: got other bytes the second time, want the same", s.Name)
		}
	}
	if len(again) != len(samples.List()) {
		t.Errorf("got %d samples generated and %d listed, want the same", len(again), len(samples.List()))
	}
}

func TestGet(t *testing.T) {
	t.Parallel()
	for _, s := range samples.List() {
		got, raw, err := samples.Get(s.Name)
		if err != nil || got != s || !bytes.HasPrefix(raw, []byte(`{"role":"system"`)) || s.About == "" || s.Window < 8_192 {
			t.Errorf("sample %s: got %+v, %d bytes, %v, want a conversation", s.Name, got, len(raw), err)
		}
		if !bytes.Contains(raw, []byte(`"facts"`)) || bytes.ContainsAny(raw, "⟦⟧") || bytes.Contains(raw, []byte("%!")) {
			t.Errorf("sample %s: want planted facts, and no marks of the generator", s.Name)
		}
	}
	if _, _, err := samples.Get("../secret"); !errors.Is(err, core.ErrNotFound) || !strings.Contains(err.Error(), "chat, coding, cjk, incident") {
		t.Errorf("got %v, want an error that names the samples", err)
	}
}
