package openapi_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/ops"
	"bobbin/tests/dbtest"
)

// TestScopes: every operation with a key of the owner's database that has every
// Scope but the one that it needs: 403, and nothing changes; a revoked key opens nothing.
func TestScopes(t *testing.T) {
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		w := newWorld(t, url)
		ada := w.settle("ada")
		with := map[string]*owner{}
		for scope, right := range map[string]core.Scopes{"read": core.CanRead, "write": core.CanWrite, "metrics": core.CanMetrics, "delete": core.CanDelete, "export": core.CanExport} {
			with[scope] = &owner{name: "ada", key: w.storedKey(url, core.Everything&^right, false), ids: ada.ids}
		}
		revoked := &owner{name: "ada", key: w.storedKey(url, core.Everything, true), ids: ada.ids}
		before := w.snapshot(ada)
		operations := 0
		for _, op := range w.doc.Operations {
			scope := w.scopeOf(op.Path, op.Method)
			if scope == "" {
				continue
			}
			path := op.Path
			for _, p := range op.Params {
				id := "1"
				if kind := kindOf(op.Path, p.Name); kind != "" {
					id = ada.ids.pick(kind, 0)
				}
				path = strings.Replace(path, "{"+p.Name+"}", id, 1)
			}
			var body any
			if op.Body != nil {
				body = map[string]any{}
			}
			status, answer := w.do(with[scope], op.Method, path, body)
			if status != http.StatusForbidden || !strings.Contains(string(answer), "missing_scope") {
				t.Errorf("%s %s without the scope %s: got %d %.200s, want 403 missing_scope", op.Method, path, scope, status, answer)
			}
			gone, answer := w.do(revoked, op.Method, path, body)
			if gone != http.StatusUnauthorized {
				t.Errorf("%s %s with a revoked key: got %d %.200s, want 401", op.Method, path, gone, answer)
			}
			operations++
		}
		if diff := cmp.Diff(before, w.snapshot(ada)); diff != "" {
			t.Errorf("what is the owner's has changed (-before +after):\n%s", diff)
		}
		if operations < 40 {
			t.Errorf("got %d operations with a scope, want at least 40: is the document read at all?", operations)
		}
	})
}

// storedKey makes a key of ada's beside the running server, and revokes it if asked.
func (w *world) storedKey(url string, rights core.Scopes, revoke bool) string {
	w.t.Helper()
	cfg := config.Default()
	cfg.Database.URL = config.NewSecretURL(url)
	var secret string
	err := ops.Admin(context.Background(), cfg, slog.New(slog.DiscardHandler), func(s *ops.Service) error {
		key, made, err := s.CreateKey(w.t.Context(), ops.NewKey{Name: "one", Owner: "ada", Rights: rights})
		secret = made
		if err == nil && revoke {
			_, err = s.RevokeKey(w.t.Context(), string(key.ID), "test")
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return secret
}

// scopeOf returns the scope that the document says an operation needs.
func (w *world) scopeOf(path, method string) string {
	w.t.Helper()
	raw, err := json.Marshal(w.doc.Raw["paths"].(map[string]any)[path].(map[string]any)[strings.ToLower(method)])
	if err != nil {
		w.t.Fatal(err)
	}
	var op struct {
		Security []map[string][]string `json:"security"`
	}
	if err := json.Unmarshal(raw, &op); err != nil {
		w.t.Fatal(err)
	}
	for _, way := range op.Security {
		for _, scopes := range way {
			return strings.Join(scopes, " ")
		}
	}
	return ""
}
