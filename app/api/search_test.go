package api_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"bobbin/app/api"
	"bobbin/app/core"
	"bobbin/app/core/quota"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
)

// A search that takes longer than 5 seconds ends with 503 and says when to come back; a
// user has two at once, those of its agents included, an owner eight, and others are not held up by them.
func TestSearchesAreBounded(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/api/v1/search?q=pump", "/api/v1/sessions?q=pump"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				backend := apitest.New(t)
				untilEnd := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
				backend.Hooks["Search.Messages"], backend.Hooks["Sessions.List"] = untilEnd, untilEnd
				opts := userOptions(backend)
				server := api.New(opts)
				answers := make(chan *httptest.ResponseRecorder, 20)
				ask := func(headers ...string) { go func() { answers <- do(server, request("GET", path, "", headers...)) }() }
				got := func() *httptest.ResponseRecorder { synctest.Wait(); return <-answers }
				ask(asEve)
				ask(asEve)
				synctest.Wait()
				ask(asEve)
				wantProblem(t, got(), 429, quota.CodeExceeded)
				agent := make(chan error, 1)
				go func() {
					_, err := backend.AgentSearch.Messages(t.Context(), core.Tenant{Owner: core.LocalOwner, User: "eve"}, core.SearchQuery{Text: "pump"})
					agent <- err
				}()
				synctest.Wait()
				compare.Equal(t, "searches of an agent that did not wait", 0, len(agent))
				for range 6 { // of kim and of the owner
					ask(asKim)
					ask()
					synctest.Wait()
				}
				for range 6 {
					wantProblem(t, got(), 429, quota.CodeExceeded)
				}
				for range 8 {
					w := <-answers
					wantProblem(t, w, 503, "search_time")
					compare.Equal(t, "Retry-After", "5", w.Header().Get("Retry-After"))
				}
				compare.Error(t, "the agent's search", nil, <-agent)
				clear(backend.Hooks)
				compare.Equal(t, "when all had ended", 200, do(server, request("GET", path, "", asEve)).Code)
			})
		})
	}
}
