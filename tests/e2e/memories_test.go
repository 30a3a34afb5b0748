package e2e_test

import (
	"encoding/json"
	"errors"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
)

// twoOwners gives a house the owners alice and bob.
func twoOwners(c *config.Config) {
	c.Auth.Keys = []config.APIKey{
		{Name: "alice", Secret: config.NewSecret("alice's secret")}, {Name: "bob", Secret: config.NewSecret("bob's secret")},
	}
}

// remember stores a memory.
func remember(t *testing.T, c *client.Client, user, content string) core.SavedMemory {
	t.Helper()
	m := apptest.Must(client.Call(t.Context(), c, ops.CreateMemory, ops.NewMemory{UserID: user, Content: content}))(t)
	return m
}

// W11: create, get, list, update, delete and search, each for the caller's own
// memories and, where a request names a user, for that user's alone.
func TestMemoryEndpoints(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		h := apptest.New(t, url, twoOwners)
		alice, bob := h.NewClient("alice's secret"), h.NewClient("bob's secret")
		pump := remember(t, alice, "carol", "The inspection of the pump is on Friday.")
		remember(t, alice, "dave", "The pump was painted green.")
		remember(t, alice, "", "The supplier is in Graz.")
		remember(t, bob, "carol", "Bob's pump is red.")
		if pump.Notice != "" || pump.Stale || pump.EmbeddingModel != "hashing-384-v1" || pump.Dimension != 384 {
			t.Errorf("created: got %+v, want it embedded offline", pump)
		}
		for _, tt := range []struct {
			name, user string
			c          *client.Client
			want       int // memories
		}{{"all of alice's", "", alice, 3}, {"alice's carol", "carol", alice, 1}, {"alice's erin", "erin", alice, 0}, {"bob", "", bob, 1}, {"bob's carol", "carol", bob, 1}} {
			page, err := client.Call(t.Context(), tt.c, ops.ListMemories, ops.MemoryList{OfUser: ops.OfUser{UserID: tt.user}})
			found, err2 := client.Call(t.Context(), tt.c, ops.SearchMemories, ops.MemorySearch{MemorySearch: core.MemorySearch{Query: "inspection of the pump"}, UserID: tt.user})
			if errors.Join(err, err2) != nil || len(page.Items) != tt.want || len(found.Items) != tt.want || found.Searched != tt.want || found.Stale != 0 || found.Matches != "words" {
				t.Errorf("%s: got %d listed and %+v found, error %v; want %d", tt.name, len(page.Items), found, errors.Join(err, err2), tt.want)
			}
		}
		found, err := client.Call(t.Context(), alice, ops.SearchMemories, ops.MemorySearch{MemorySearch: core.MemorySearch{Query: "When is the inspection?", Limit: 1}})
		if err != nil || len(found.Items) != 1 || found.Items[0].Memory.ID != pump.ID || found.Items[0].Score <= 0 {
			t.Errorf("search: got %+v, error %v, want the inspection", found, err)
		}
		if none, err := client.Call(t.Context(), alice, ops.SearchMemories, ops.MemorySearch{MemorySearch: core.MemorySearch{Query: "When is the inspection?", MinScore: new(float32(0.99))}}); err != nil || len(none.Items) != 0 {
			t.Errorf("search for what is nearly the same: got %+v, error %v, want nothing", none, err)
		}
		if m, err := client.Call(t.Context(), alice, ops.GetMemory, ops.InMemory{MemoryID: pump.ID, OfUser: ops.OfUser{UserID: "carol"}}); err != nil || m.Content != pump.Content {
			t.Errorf("get: got %+v, error %v, want the inspection", m, err)
		}
		page, err := client.Call(t.Context(), alice, ops.ListMemories, ops.MemoryList{PageQuery: core.PageQuery{Limit: 2}})
		if err != nil || len(page.Items) != 2 || page.NextCursor == nil {
			t.Fatalf("list: got %+v, error %v, want a page of 2", page, err)
		}
		if page, err = client.Call(t.Context(), alice, ops.ListMemories, ops.MemoryList{PageQuery: core.PageQuery{Limit: 2, Cursor: *page.NextCursor}}); err != nil || len(page.Items) != 1 || page.Items[0].ID != pump.ID {
			t.Errorf("list on: got %+v, error %v, want the inspection", page, err)
		}
		changed, err := client.Call(t.Context(), alice, ops.UpdateMemory, ops.MemoryEdit{InMemory: ops.InMemory{MemoryID: pump.ID, OfUser: ops.OfUser{UserID: "carol"}}, Content: "The valve is new.", Metadata: json.RawMessage(`{"from":"mail"}`)})
		if err != nil || changed.Content != "The valve is new." || changed.UserID != "carol" || changed.Stale || !changed.UpdatedAt.After(changed.CreatedAt) {
			t.Errorf("update: got %+v, error %v", changed, err)
		}
		found, err = client.Call(t.Context(), alice, ops.SearchMemories, ops.MemorySearch{MemorySearch: core.MemorySearch{Query: "valve"}, UserID: "carol"})
		if err != nil || len(found.Items) != 1 || string(found.Items[0].Memory.Metadata) == "" {
			t.Errorf("search after the update: got %+v, error %v", found, err)
		}
		h.Restart()
		alice = h.NewClient("alice's secret")
		if _, err := client.Call(t.Context(), alice, ops.DeleteMemory, ops.InMemory{MemoryID: pump.ID, OfUser: ops.OfUser{UserID: "carol"}}); err != nil {
			t.Errorf("delete: %v", err)
		}
		found, err = client.Call(t.Context(), alice, ops.SearchMemories, ops.MemorySearch{MemorySearch: core.MemorySearch{Query: "valve"}})
		if err != nil || found.Searched != 2 {
			t.Errorf("search after the deletion: got %+v, error %v, want 2 searched", found, err)
		}
		if _, err := client.Call(t.Context(), alice, ops.GetMemory, ops.InMemory{MemoryID: pump.ID}); !errors.Is(err, core.ErrNotFound) {
			t.Errorf("get after the deletion: got error %v, want not found", err)
		}
	})
}
