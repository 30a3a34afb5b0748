package openai

import (
	"regexp"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// A client whose run waits is told so immediately, as its protocol allows, and nothing else before
// the run starts.
func TestQueued(t *testing.T) {
	t.Parallel()
	run := core.Run{ID: "0192f0c4-0000-7000-8000-000000000001"}
	said := regexp.MustCompile(`event: \S+|"sequence_number":\d|: queued|"role":"assistant"|"status":"\w+"`)
	newShape := func() *responseShape { return newResponseShape(activeRun{}, nil) }
	for name, tt := range map[string]struct {
		encode         func([]byte, core.Event) ([]byte, error)
		queued, starts string
	}{
		"chunks": {newChunkEncoder(run, completionRequest{Model: "assistant"}, 1).encode, `: queued`, `"role":"assistant"`},
		"responses": {newResponseEncoder(newShape(), run, -1).encode,
			`event: response.created "sequence_number":0 "status":"queued" event: response.queued "sequence_number":1 "status":"queued"`, `event: response.in_progress "sequence_number":2 "status":"in_progress"`},
		"responses that come back": {newResponseEncoder(newShape(), run, 0).encode, `event: response.queued "sequence_number":1 "status":"queued"`, `event: response.in_progress "sequence_number":2 "status":"in_progress"`},
	} {
		queued := must.Get(tt.encode(nil, core.Event{Type: core.EventRunQueued, Data: core.MessageData{}}))(t)
		starts := must.Get(tt.encode(nil, core.Event{Type: core.EventRunStarted, Data: core.RunData{Run: run}}))(t)
		compare.Equal(t, name+": while it waits", tt.queued, strings.Join(said.FindAllString(string(queued), -1), " "))
		compare.Equal(t, name+": when it starts", tt.starts, strings.Join(said.FindAllString(string(starts), -1), " "))
	}
	slot := core.Event{Type: core.EventNodeStarted, Data: core.NodeData{Node: core.NodeModelSlot}}
	got := must.Get(newChunkEncoder(run, completionRequest{Model: "assistant"}, 1).encode(nil, slot))(t)
	compare.Equal(t, "while it waits for a slot of its model", queuedComment, string(got))
}
