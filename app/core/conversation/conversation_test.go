package conversation_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
)

// What a message is refused for comes in a fixed order, in words that say what to do.
func TestAdmit(t *testing.T) {
	t.Parallel()
	now := time.Now()
	busy := conversation.Counts{Active: 1, Queued: 1, Owned: 2, OfUser: 1}
	for name, tt := range map[string]struct {
		state conversation.State
		in    core.AcceptRun
		want  error
		says  string
	}{
		"idle":             {},
		"busy":             {state: conversation.State{Counts: busy}},
		"archived":         {conversation.State{Session: core.Session{ArchivedAt: &now}, Counts: busy}, core.AcceptRun{MaxQueued: 1}, core.ErrConflict, "archived"},
		"key taken":        {conversation.State{Counts: conversation.Counts{Taken: 1}}, core.AcceptRun{ClientMessageID: "c", RequestHash: "h"}, core.ErrInvalid, "Idempotency-Key"},
		"taken":            {conversation.State{Counts: conversation.Counts{Taken: 1}}, core.AcceptRun{ClientMessageID: "c"}, core.ErrConflict, "c belongs to another message"},
		"branch":           {conversation.State{Counts: busy}, core.AcceptRun{Answers: "m"}, core.ErrConflict, "cancel its runs"},
		"branch, idle":     {in: core.AcceptRun{After: "m"}},
		"branch, instead":  {state: conversation.State{Counts: conversation.Counts{Active: 1}}, in: core.AcceptRun{After: "m", Multitask: core.MultitaskInterrupt}},
		"branch in queue":  {conversation.State{Counts: busy}, core.AcceptRun{After: "m", Multitask: core.MultitaskInterrupt}, core.ErrConflict, "cancel its runs"},
		"reject":           {conversation.State{Counts: busy}, core.AcceptRun{Multitask: core.MultitaskReject}, core.ErrConflict, "another message"},
		"full queue":       {conversation.State{Counts: busy}, core.AcceptRun{MaxQueued: 1}, core.ErrRateLimited, "1 queued messages"},
		"room in queue":    {state: conversation.State{Counts: busy}, in: core.AcceptRun{MaxQueued: 2}},
		"too many of user": {conversation.State{Counts: busy}, core.AcceptRun{MaxOfUser: 1}, core.ErrRateLimited, "limits.runs_per_user"},
		"too many":         {conversation.State{Counts: busy}, core.AcceptRun{MaxOwned: 2}, core.ErrRateLimited, "limits.runs_per_owner"},
		"other model":      {conversation.State{}, core.AcceptRun{SessionAgent: &core.SessionAgent{Model: "m"}}, core.ErrStale, "another agent or model"},
	} {
		if err := conversation.Admit(tt.state, tt.in); !errors.Is(err, tt.want) || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got %v, want %v with %q", name, err, tt.want, tt.says)
		}
	}
}
