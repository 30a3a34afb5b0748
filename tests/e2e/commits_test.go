package e2e_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/apptest"
)

// keyedRequest is a request with an idempotency key, and what it stores.
type keyedRequest struct {
	method string // empty = POST
	path   string
	media  string // empty = JSON
	body   string
}

// keyedAnswer is the answer to it.
type keyedAnswer struct {
	status   int
	code     string
	replayed bool
	body     string
}

// sendKeyed sends the request with the key, again as long as it is being worked on.
func sendKeyed(t *testing.T, h *apptest.Bobbin, r keyedRequest, key string) keyedAnswer {
	t.Helper()
	for {
		method, media := r.method, r.media
		if method == "" {
			method = http.MethodPost
		}
		if media == "" {
			media = "application/json"
		}
		req, err := http.NewRequestWithContext(t.Context(), method, h.URL+"/api/v1"+r.path, strings.NewReader(r.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", media)
		req.Header.Set("Idempotency-Key", key)
		req.Header.Set("Prefer", "respond-async")
		res, err := h.HTTP.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		var problem struct{ Code string }
		_ = json.Unmarshal(body, &problem) // an answer of success has no code
		if problem.Code != core.CodeInProgress {
			return keyedAnswer{res.StatusCode, problem.Code, res.Header.Get("Idempotency-Replayed") == "true", string(body)}
		}
		apptest.PauseBriefly(t)
	}
}
