package openapi_test

import (
	"net/http"
	"strings"
	"testing"

	"bobbin/tests/dbtest"
)

// isKey reports whether they come with an API key, and not with a token.
func (o *owner) isKey() bool { return strings.Count(o.key, ".") != 2 }

// TestUsersSeeNoSecrets: an end user is shown neither the webhook of a session or run,
// nor what agents are told, in no answer and in no event; to name a webhook, or another
// user, is 403.
func TestUsersSeeNoSecrets(t *testing.T) {
	dbtest.EachURL(t, func(t *testing.T, url string) {
		w := newWorld(t, url)
		ada, kim := &owner{name: "ada", key: "ada-secret-ada-secret", ids: newPool()}, w.user("kim")
		at := "/api/v1/sessions/" + kim.ids.pick("session", 0)
		hook := map[string]any{"url": "https://hooks.example/T0/hushhush"}
		w.must(ada, "PATCH", at, map[string]any{"webhook": hook})
		said := w.must(ada, "POST", at+"/messages", map[string]any{"content": "one more", "webhook": hook})
		run := said["run"].(map[string]any)["id"].(string)
		kim.ids.ids["run"] = []string{run}
		seen := 0
		for _, op := range operations() {
			if op.Method() != http.MethodGet || op.OwnersOnly || op.ID == "getDeletion" { // there is none
				continue
			}
			path := strings.Replace(pathOf(op, kim.ids), "q=word", "q=more", 1)
			status, answer := w.do(kim, "GET", path, nil)
			if status != http.StatusOK {
				t.Errorf("%s: got %d %.200s, want 200", path, status, answer)
			}
			for _, secret := range []string{"hushhush", "You are a helpful"} {
				if strings.Contains(string(answer), secret) {
					t.Errorf("%s shows an end user %q: %.600s", path, secret, answer)
				}
			}
			if _, full := w.do(ada, "GET", path, nil); strings.Contains(string(full), "hushhush") || strings.Contains(string(full), "You are a helpful") {
				seen++
			}
		}
		if seen < 6 {
			t.Errorf("got the secrets in %d answers for the owner, want at least 6: is there something to hide?", seen)
		}
		forbidden := func(method, path string, body any) {
			t.Helper()
			if status, answer := w.do(kim, method, path, body); status != http.StatusForbidden {
				t.Errorf("%s %s %v: got %d %.200s, want 403", method, path, body, status, answer)
			}
		}
		forbidden("POST", "/api/v1/sessions", map[string]any{"webhook": hook})
		forbidden("PATCH", at, map[string]any{"webhook": map[string]any{"url": ""}})
		forbidden("POST", at+"/messages", map[string]any{"content": "x", "webhook": hook})
		for path, field := range map[string]string{"/api/v1/sessions": "title", at + "/messages": "content", "/api/v1/memories": "content", "/api/v1/memories/search": "query"} {
			forbidden("POST", path, map[string]any{field: "x", "user_id": "u-eve"})
		}
		for _, path := range []string{"/api/v1/sessions?user_id=u-eve", "/api/v1/search?q=x&user_id=u-eve", "/api/v1/memories?user_id=u-eve"} {
			forbidden("GET", path, nil)
		}
	})
}
