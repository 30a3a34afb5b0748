package openapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/tests/dbtest"
	"bobbin/tests/document"
)

// isKey reports whether they come with an API key, and not with a token.
func (o *owner) isKey() bool { return strings.Count(o.key, ".") != 2 }

// forUsers reports whether the document lets end users ask for the operation.
func (w *world) forUsers(op *document.Operation) bool {
	w.t.Helper()
	raw, err := json.Marshal(w.doc.Raw["paths"].(map[string]any)[op.Path].(map[string]any)[strings.ToLower(op.Method)])
	if err != nil {
		w.t.Fatal(err)
	}
	var read struct {
		Security []map[string][]string `json:"security"`
	}
	if err := json.Unmarshal(raw, &read); err != nil {
		w.t.Fatal(err)
	}
	return slices.ContainsFunc(read.Security, func(way map[string][]string) bool { return way["jwt"] != nil })
}

// TestUsers: two end users of one owner, by their tokens. Every operation of the
// document and every place in it where an id stands: the second with the ids of the
// first, and with those of what the owner has for somebody else, gets 404 (or 403), sees
// nothing of them, and changes nothing; the owner's key gets at all of it. What is the
// owner's is 403.
func TestUsers(t *testing.T) {
	dbtest.EachURL(t, func(t *testing.T, url string) {
		w := newWorld(t, url)
		ada, kim, eve := w.settle("ada"), w.user("kim"), w.user("eve")
		own := &owner{name: "ada", key: ada.key, marker: kim.marker, ids: kim.ids} // kim's things by the owner's key
		before := w.snapshot(own)
		others := w.snapshot(ada)
		refusals := 0
		for _, op := range w.doc.Operations {
			if op.ID == "watchSessions" { // it does not end: e2e.TestHeadsOfUsers, events.TestHeads
				continue
			}
			if !w.forUsers(op) {
				w.closed(op, eve)
				continue
			}
			cases := theirs(w.doc, op)
			if len(cases) == 0 {
				w.alone(op, eve, kim)
				w.alone(op, eve, ada)
			}
			for _, c := range cases {
				w.refused(op, c, eve, kim)
				w.refused(op, c, eve, ada)
				refusals++
				w.open(op, c, own)
			}
		}
		for whose, diff := range map[string]string{"the other user's": cmp.Diff(before, w.snapshot(own)), "the owner's": cmp.Diff(others, w.snapshot(ada))} {
			if diff != "" {
				t.Errorf("what is %s has changed (-before +after):\n%s", whose, diff)
			}
		}
		if refusals < 30 {
			t.Errorf("got %d refusals, want at least 30: is the document read at all?", refusals)
		}
	})
}

// closed asks as an end user for what is not for one.
func (w *world) closed(op *document.Operation, user *owner) {
	w.t.Helper()
	if w.scopeOf(op.Path, op.Method) == "" {
		return
	}
	path := op.Path
	for _, p := range op.Params {
		id := "1"
		if kind := kindOf(op.Path, p.Name); kind != "" {
			id = user.ids.pick(kind, 0)
		}
		path = strings.Replace(path, "{"+p.Name+"}", id, 1)
	}
	status, answer := w.do(user, op.Method, path, nil)
	if status != http.StatusForbidden {
		w.t.Errorf("%s %s by an end user: got %d %.200s, want 403", op.Method, path, status, answer)
	}
}

// open asks by the owner's key for what is an end user's.
func (w *world) open(op *document.Operation, c place, own *owner) {
	w.t.Helper()
	if op.Method != http.MethodGet || c.in != "path" || op.Answers[http.StatusOK].Events != nil {
		return
	}
	path := op.Path
	for _, p := range op.Params {
		id := "1"
		if kind := kindOf(op.Path, p.Name); kind != "" {
			id = own.ids.pick(kind, 0)
		}
		path = strings.Replace(path, "{"+p.Name+"}", id, 1)
	}
	if status, answer := w.do(own, op.Method, path, nil); status != http.StatusOK {
		w.t.Errorf("%s %s of a user's by the owner's key: got %d %.200s, want 200", op.Method, path, status, answer)
	}
}

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
		kim.ids.add("run", run)
		seen := 0
		for _, op := range w.doc.Operations {
			if op.Method != http.MethodGet || !w.forUsers(op) || op.Path == "/api/v1/events" || op.Path == "/api/v1/sessions/{id}/events" || op.ID == "getDeletion" { // there is none
				continue
			}
			path := strings.NewReplacer("{name}", "assistant", "{version}", "1").Replace(op.Path)
			for _, p := range op.Params {
				if kind := kindOf(op.Path, p.Name); kind == "run" {
					path = strings.Replace(path, "{"+p.Name+"}", run, 1)
				} else if kind != "" {
					path = strings.Replace(path, "{"+p.Name+"}", kim.ids.pick(kind, 0), 1)
				}
			}
			if strings.HasSuffix(path, "/search") {
				path += "?q=more"
			}
			status, answer := w.do(kim, op.Method, path, nil)
			if status != http.StatusOK {
				t.Errorf("%s: got %d %.200s, want 200", path, status, answer)
			}
			for _, secret := range []string{"hushhush", "You are a helpful"} {
				if strings.Contains(string(answer), secret) {
					t.Errorf("%s shows an end user %q: %.600s", path, secret, answer)
				}
			}
			if _, full := w.do(ada, op.Method, path, nil); strings.Contains(string(full), "hushhush") || strings.Contains(string(full), "You are a helpful") {
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
