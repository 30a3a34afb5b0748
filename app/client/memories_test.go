package client_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apitest"
)

// W11: the client reaches every endpoint of memories.
func TestMemories(t *testing.T) {
	t.Parallel()
	carol := core.Tenant{Owner: "ann", User: "carol"}
	tests := []struct {
		name, call string
		ask        func(ctx context.Context, c *client.Client) (string, error)
		want       string // of what the answer says
		args       any
	}{
		{"create", "Memories.Create", func(ctx context.Context, c *client.Client) (string, error) {
			m, err := c.CreateMemory(ctx, core.Memory{UserID: "carol", Content: "tea", Metadata: json.RawMessage(`{"a":1}`)})
			return m.Content, err
		}, "tea", core.Memory{Content: "tea", Metadata: json.RawMessage(`{"a":1}`)}},
		{"get", "Memories.Get", func(ctx context.Context, c *client.Client) (string, error) {
			m, err := c.Memory(ctx, "carol", apitest.MemoryID)
			return m.Content, err
		}, "The inspection is on Friday.", apitest.MemoryID},
		{"list", "Memories.List", func(ctx context.Context, c *client.Client) (string, error) {
			page, err := c.Memories(ctx, "carol", core.PageQuery{Limit: 3, Cursor: "x"})
			return page.Items[0].Content, err
		}, "The inspection is on Friday.", core.PageQuery{Limit: 3, Cursor: "x"}},
		{"update", "Memories.Update", func(ctx context.Context, c *client.Client) (string, error) {
			m, err := c.UpdateMemory(ctx, "carol", core.Memory{ID: apitest.MemoryID, Content: "milk"})
			return m.Content + m.Notice[:10], err
		}, "milkthe memory", core.Memory{ID: apitest.MemoryID, Content: "milk"}},
		{"delete", "Memories.Delete", func(ctx context.Context, c *client.Client) (string, error) {
			return "", c.DeleteMemory(ctx, "carol", apitest.MemoryID)
		}, "", apitest.MemoryID},
		{"search", "Memories.Search", func(ctx context.Context, c *client.Client) (string, error) {
			found, err := c.SearchMemories(ctx, "carol", core.MemorySearch{Query: "q", Limit: 2, MinScore: new(float32(0.5))})
			return found.Items[0].Memory.Content, err
		}, "The inspection is on Friday.", core.MemorySearch{Query: "q", Limit: 2, MinScore: new(float32(0.5))}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			backend := apitest.New()
			got, err := tt.ask(t.Context(), dial(t, backend, "s3cret"))
			if err != nil || got != tt.want {
				t.Errorf("got %q, error %v; want %q", got, err, tt.want)
			}
			want := []apitest.Call{{Method: tt.call, Scope: carol, Args: []any{tt.args}}}
			if diff := cmp.Diff(want, backend.Calls()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
	backend := apitest.New()
	done, err := dial(t, backend, "s3cret").ReindexMemories(t.Context(), core.Reindex{Cursor: "c", Limit: 5})
	want := []apitest.Call{{Method: "Memories.Reindex", Scope: core.Tenant{Owner: "ann"}, Args: []any{core.Reindex{Cursor: "c", Limit: 5}}}}
	if diff := cmp.Diff(want, backend.Calls()); err != nil || done.Embedded != 63 || diff != "" {
		t.Errorf("reindex: got %+v, error %v, calls (-want +got):\n%s", done, err, diff)
	}
	// All owners' are not an API key's.
	_, err = dial(t, backend, "s3cret").ReindexMemories(t.Context(), core.Reindex{AllOwners: true})
	if want := 403; statusOf(err) != want {
		t.Errorf("reindex of all owners: got error %v, want status %d", err, want)
	}
}

func statusOf(err error) int {
	problem, _ := err.(*client.ProblemError) //nolint:errorlint // the client returns it as it is
	if problem == nil {
		return 0
	}
	return problem.Status
}
