package openai

import (
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/must"
)

// A client whose run waits is told so immediately, as its protocol allows, and nothing else before
// the run starts.
func TestQueued(t *testing.T) {
	t.Parallel()
	run := core.Run{ID: "0192f0c4-0000-7000-8000-000000000001"}
	queued, started := core.Event{Type: core.EventRunQueued, Data: core.MessageData{}}, core.Event{Type: core.EventRunStarted, Data: core.RunData{Run: run}}
	for _, tt := range []struct {
		name         string
		encode       func([]byte, core.Event) ([]byte, error)
		first, later []string
	}{
		{"chunks", newChunkEncoder(run, completionRequest{Model: "assistant"}, 1).encode, []string{": queued\n\n"}, []string{`"role":"assistant"`}},
		{"responses", newResponseEncoder(newResponseShape(activeRun{}, nil), run.ID, -1).encode,
			[]string{"event: response.created\n", `"sequence_number":0`, "event: response.queued\n", `"sequence_number":1`, `"status":"queued"`},
			[]string{"event: response.in_progress\n", `"sequence_number":2`, `"status":"in_progress"`}},
		{"responses that come back", newResponseEncoder(newResponseShape(activeRun{}, nil), run.ID, 0).encode, []string{"event: response.queued\n"}, []string{"event: response.in_progress\n"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			wantFrames(t, tt.encode, queued, tt.first, tt.later)
			wantFrames(t, tt.encode, started, tt.later, tt.first[:1])
		})
	}
}

// wantFrames wants the frames of an event to have these texts, and not those.
func wantFrames(t *testing.T, encode func([]byte, core.Event) ([]byte, error), e core.Event, these, those []string) {
	t.Helper()
	got := must.Get(encode(nil, e))(t)
	for _, text := range these {
		if !strings.Contains(string(got), text) {
			t.Errorf("%s: got %q, want %q in it", e.Type, got, text)
		}
	}
	for _, text := range those {
		if strings.Contains(string(got), text) {
			t.Errorf("%s: got %q, want no %q", e.Type, got, text)
		}
	}
}
