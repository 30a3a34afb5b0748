package client_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apitest"
)

// TestBranchRoundTrips: what is asked of a log's branches arrives at the services.
func TestBranchRoundTrips(t *testing.T) {
	t.Parallel()
	id, mid := apitest.SessionID, apitest.UserID
	edit := core.SendMessage{SessionID: id, Edits: mid, Content: "Hi!", ClientMessageID: "c", Multitask: core.MultitaskInterrupt, Source: core.SourceCLI}
	again := core.Regenerate{
		SessionID: id, MessageID: mid, User: "u", ClientMessageID: "c", Model: "m", Multitask: core.MultitaskReject, Source: core.SourceWeb,
	}
	last := func(c *client.Client, r core.Regenerate) (core.EventType, error) {
		var kind core.EventType
		for e, err := range c.Regenerate(context.Background(), r) {
			if err != nil {
				return kind, err
			}
			kind = e.Type
		}
		return kind, nil
	}
	tests := map[string]struct {
		ask  func(c *client.Client) (any, error)
		want func(b *apitest.Backend) any
		call apitest.Call
	}{
		"edit": {
			func(c *client.Client) (any, error) { return c.SendAsync(t.Context(), edit) },
			func(b *apitest.Backend) any { return b.Accepted }, apitest.Call{Method: "Send", Args: []any{edit}},
		},
		"regenerate": {
			func(c *client.Client) (any, error) { return c.RegenerateAndWait(t.Context(), again) },
			func(b *apitest.Backend) any { return client.Answer{Run: b.Run, Message: &b.Messages[1]} }, apitest.Call{Method: "Regenerate", Args: []any{again}},
		},
		"regenerate as a stream": {
			func(c *client.Client) (any, error) { return last(c, again) },
			func(*apitest.Backend) any { return core.EventRunSucceeded }, apitest.Call{Method: "Regenerate", Args: []any{again}},
		},
		"select": {
			func(c *client.Client) (any, error) {
				s, err := c.SelectMessage(t.Context(), id, mid)
				return s.ID, err
			},
			func(*apitest.Backend) any { return id }, apitest.Call{Method: "Select", Args: []any{id, mid}},
		},
		"pin": {
			func(c *client.Client) (any, error) {
				m, err := c.PinMessage(t.Context(), id, mid, true)
				return m.Pinned, err
			},
			func(*apitest.Backend) any { return true }, apitest.Call{Method: "Pin", Args: []any{id, mid, true}},
		},
		"standing instructions": {
			func(c *client.Client) (any, error) {
				page, err := c.StandingInstructions(t.Context(), id, core.PageQuery{Limit: 3})
				return page.Items[0], err
			},
			func(*apitest.Backend) any { return apitest.Instruction() }, apitest.Call{Method: "StandingInstructions", Args: []any{id, core.PageQuery{Limit: 3}}},
		},
		"add an instruction": {
			func(c *client.Client) (any, error) {
				i, err := c.AddInstruction(t.Context(), id, "Be brief.")
				return i.Text, err
			},
			func(*apitest.Backend) any { return "Be brief." }, apitest.Call{Method: "AddInstruction", Args: []any{id, "Be brief."}},
		},
		"edit an instruction": {
			func(c *client.Client) (any, error) {
				i, err := c.EditInstruction(t.Context(), id, apitest.InstructionID, "Be brief.")
				return i.Text, err
			},
			func(*apitest.Backend) any { return "Be brief." }, apitest.Call{Method: "EditInstruction", Args: []any{id, apitest.InstructionID, "Be brief."}},
		},
		"remove an instruction": {
			func(c *client.Client) (any, error) {
				return nil, c.RemoveInstruction(t.Context(), id, apitest.InstructionID)
			},
			func(*apitest.Backend) any { return nil }, apitest.Call{Method: "RemoveInstruction", Args: []any{id, apitest.InstructionID}},
		},
		"delete": {
			func(c *client.Client) (any, error) { return nil, c.DeleteMessage(t.Context(), id, mid) },
			func(*apitest.Backend) any { return nil }, apitest.Call{Method: "DeleteMessage", Args: []any{id, mid}},
		},
		"slack": {
			func(c *client.Client) (any, error) {
				thread, err := c.SlackThread(t.Context(), id)
				return fmt.Sprint(thread.Mode, len(thread.Faults)), err
			},
			func(*apitest.Backend) any { return "two_way1" }, apitest.Call{Method: "SlackThread", Args: []any{id}},
		},
		"attach": {
			func(c *client.Client) (any, error) {
				thread, err := c.AttachSlack(t.Context(), core.SlackThread{SessionID: id, Team: "T1", Channel: "C1", Thread: "1.000001", Mode: core.SlackOff})
				return thread.Thread, err
			},
			func(*apitest.Backend) any { return "1.000001" },
			apitest.Call{Method: "AttachSlack", Args: []any{core.SlackThread{SessionID: id, Team: "T1", Channel: "C1", Thread: "1.000001", Mode: core.SlackOff}}},
		},
		"detach": {
			func(c *client.Client) (any, error) { return nil, c.DetachSlack(t.Context(), id) },
			func(*apitest.Backend) any { return nil }, apitest.Call{Method: "DetachSlack", Args: []any{id}},
		},
		"fork": {
			func(c *client.Client) (any, error) {
				s, err := c.ForkSession(t.Context(), id, mid)
				return s.Title, err
			},
			func(b *apitest.Backend) any { return b.Session.Title + " (fork)" },
			apitest.Call{Method: "Fork", Args: []any{core.ForkSession{SessionID: id, MessageID: mid}}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			backend := apitest.New()
			got, err := tt.ask(dial(t, backend, "s3cret"))
			if err != nil {
				t.Fatalf("got error %v, want none", err)
			}
			if diff := cmp.Diff(tt.want(backend), got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			call := backend.Calls()[0]
			if call.Scope.Owner != "ann" || call.Method != tt.call.Method || !cmp.Equal(call.Args, tt.call.Args) {
				t.Errorf("got call %+v, want %+v of ann", call, tt.call)
			}
		})
	}
}
