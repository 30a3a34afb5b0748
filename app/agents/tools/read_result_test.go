package tools_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
)

// messages is the message log of one session of ann's.
type messages struct {
	core.MessageStore

	all map[core.MessageID]core.Message
}

func (m messages) Get(_ context.Context, tenant core.Tenant, session core.SessionID, id core.MessageID) (core.Message, error) {
	if id == "broken" {
		return core.Message{}, errors.New("disk on fire")
	}
	if got, ok := m.all[id]; ok && tenant.Owner == "ann" && session == "s1" {
		return got, nil
	}
	return core.Message{}, core.Errorf(core.ErrNotFound, "message %s does not exist", id)
}

// What a prompt shows only in part can be read whole, by
// those to whom the session belongs.
func TestReadResult(t *testing.T) {
	t.Parallel()
	now := time.Now()
	log := messages{all: map[core.MessageID]core.Message{
		"m1":    {Role: core.RoleTool, Content: "0123456789"},
		"m2":    {Role: core.RoleTool, Content: strings.Repeat("ü", 10_000)},
		"said":  {Role: core.RoleUser, Content: "hello"},
		"empty": {Role: core.RoleTool},
		"gone":  {Role: core.RoleTool, Content: "x", DeletedAt: &now},
	}}
	tool := tools.NewReadResult(log)
	ann := core.Session{ID: "s1", Owner: "ann"}
	const expected = `; expected a JSON object such as {"message_id": "01890a5d-ac96-774b-bcce-b302099a8057", "offset": 8000}`
	unknown := func(id string) string { return `this conversation has no tool result with the id "` + id + `"` }
	tests := []struct {
		name, arguments string
		session         core.Session
		want, wantErr   string
	}{
		{"all", `{"message_id": "m1"}`, ann, "[bytes 0 to 10 of 10; this is the end]\n0123456789", ""},
		{"a part", `{"message_id": "m1", "offset": 2, "length": 5}`, ann, "[bytes 2 to 7 of 10; continue at offset 7]\n23456", ""},
		{"the end", `{"message_id": "m1", "offset": 7, "length": 5}`, ann, "[bytes 7 to 10 of 10; this is the end]\n789", ""},
		{"whole characters", `{"message_id": "m2", "offset": 1, "length": 5}`, ann, "[bytes 2 to 6 of 20000; continue at offset 6]\nüü", ""},
		{"the usual length", `{"message_id": "m2"}`, ann, "[bytes 0 to 8000 of 20000; continue at offset 8000]\n" + strings.Repeat("ü", 4000), ""},
		{"behind the end", `{"message_id": "m1", "offset": 10}`, ann, "", "the result has only 10 bytes; offset 10 is behind its end"},
		{"of nothing", `{"message_id": "empty"}`, ann, "", "the result has only 0 bytes; offset 0 is behind its end"},
		{"before the beginning", `{"message_id": "m1", "offset": -1}`, ann, "", "the offset must be 0 or more"},
		{"too much", `{"message_id": "m1", "length": 32001}`, ann, "", "the length must be 1 to 32000"},
		{"no result", `{"message_id": "said"}`, ann, "", unknown("said")},
		{"deleted", `{"message_id": "gone"}`, ann, "", unknown("gone")},
		{"not there", `{"message_id": "m9"}`, ann, "", unknown("m9")},
		{"of another owner", `{"message_id": "m1"}`, core.Session{ID: "s1", Owner: "eve"}, "", unknown("m1")},
		{"of another session", `{"message_id": "m1"}`, core.Session{ID: "s2", Owner: "ann"}, "", unknown("m1")},
		{"nothing", ``, ann, "", unknown("")},
		{"a store that fails", `{"message_id": "broken"}`, ann, "", "the result cannot be read at the moment"},
		{"wrong type", `{"message_id": 1}`, ann, "", `"message_id" must be a string, not a number` + expected},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := tool.Call(t.Context(), tools.Call{Arguments: tt.arguments, Session: tt.session})
			checkAnswer(t, got, err, tt.want, tt.wantErr)
		})
	}
	if tool.Spec().Name != core.ToolReadResult || !tool.Idempotent() {
		t.Errorf("got %+v, idempotent %v", tool.Spec(), tool.Idempotent())
	}
}
