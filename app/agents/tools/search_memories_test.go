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

// An agent finds the memories of the session's user, and never those of another one.
func TestSearchMemories(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	all := []core.MemoryMatch{
		{Memory: core.Memory{ID: "m1", UserID: "ann", Content: "is allergic to nuts", CreatedAt: day}},
		{Memory: core.Memory{ID: "m2", UserID: "bob", Content: "likes jazz", CreatedAt: day}},
		{Memory: core.Memory{ID: "m3", Content: "the office is in Linz", CreatedAt: day}},
	}
	tool := tools.NewSearchMemories(func(_ context.Context, tenant core.Tenant, in core.MemorySearch) (core.MemoryMatches, error) {
		if in.Query == "broken" {
			return core.MemoryMatches{}, errors.New("the database is gone")
		}
		var found core.MemoryMatches
		for _, m := range all {
			if tenant.Owner == "acme" && (tenant.User == "" || tenant.User == m.Memory.UserID) {
				found.Items = append(found.Items, m)
			}
		}
		return found, nil
	})
	for name, c := range map[string]struct{ user, arguments, want string }{
		"a user":      {"ann", `{"query":"food"}`, "The nearest memory; it may have nothing to do with the query.\n\n[memory m1, 1 March 2026]\nis allergic to nuts"},
		"no user":     {"", `{"query":"food"}`, "The nearest memory; it may have nothing to do with the query.\n\n[memory m3, 1 March 2026]\nthe office is in Linz"},
		"a stranger":  {"eve", `{"query":"food"}`, "There are no memories of this user."},
		"no query":    {"ann", `{}`, `error: the query is missing; expected a JSON object such as {"query": "dietary restrictions"}`},
		"unknown":     {"ann", `{"q":"x"}`, `error: there is no argument "q"; expected a JSON object such as {"query": "dietary restrictions"}`},
		"no database": {"ann", `{"query":"broken"}`, "error: the memories cannot be searched at the moment"},
	} {
		got, err := tool.Call(t.Context(), tools.Call{Arguments: c.arguments, Session: core.Session{Owner: "acme", UserID: c.user}})
		if err != nil {
			got = "error: " + err.Error()
		}
		if strings.TrimSpace(got) != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
