package openapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
)

// operations returns those of the table that end, without the operator's own.
func operations() []ops.Operation {
	var all []ops.Operation
	for _, op := range ops.All() {
		if op.Scope != 0 && !strings.HasSuffix(op.Path(), "/events") { // e2e.TestHeadsOfUsers, events.TestHeads
			all = append(all, op)
		}
	}
	return all
}

// TestOwners: every operation and every place in its request where an id stands: another owner with
// the ids of the first, and an end user with those of another one and of the owner, gets 404 (or
// 403), sees nothing of them, and changes nothing. The owner's key gets at what is an end user's;
// what is the owner's is 403 for end users.
func TestOwners(t *testing.T) {
	dbtest.EachURL(t, func(t *testing.T, url string) {
		w := newWorld(t, url)
		ada, bob, kim, eve := w.settle("ada"), w.settle("bob"), w.user("kim"), w.user("eve")
		own := &owner{name: "ada", key: ada.key, marker: kim.marker, ids: kim.ids} // kim's things by the owner's key
		before := [2]map[string]string{w.snapshot(ada), w.snapshot(own)}
		refusals := 0
		for _, op := range operations() {
			for _, pair := range [][2]*owner{{bob, ada}, {eve, ada}, {eve, kim}} {
				asks, whose := pair[0], pair[1]
				places := theirs(op)
				switch {
				case op.OwnersOnly && asks == eve:
					if status, answer := w.do(eve, op.Method(), pathOf(op, eve.ids), nil); status != http.StatusForbidden {
						t.Errorf("%s by an end user: got %d %.200s, want 403", op.Route, status, answer)
					}
				case len(places) == 0:
					w.alone(op, asks, whose)
				}
				for _, p := range places {
					if !op.OwnersOnly || asks == bob {
						w.refused(op, p, asks, whose)
						refusals++
					}
				}
			}
			if op.Method() == http.MethodGet && strings.Contains(op.Path(), "{") && op.ID != "getDeletion" { // there is none
				w.open(op, ada)
				if op.ID != "getSlackThread" { // of a user's session there is none
					w.open(op, own)
				}
				if !op.OwnersOnly {
					w.open(op, kim)
				}
			}
		}
		compare.Equal(t, "what is the first owner's, or a user's, has changed", before, [2]map[string]string{w.snapshot(ada), w.snapshot(own)})
		compare.True(t, refusals >= 90, "got %d refusals, want at least 90: is the table read at all?", refusals)
	})
}

// theirs returns the places of a request where an id of the pool may stand.
func theirs(op ops.Operation) []ops.Field {
	places := []ops.Field{}
	for _, f := range ops.Fields(op.In) {
		switch {
		case f.Name == "parts":
			f.Noun = "blob"
		case f.Name == "session_id" || f.Name == "message_id":
			f.Noun = strings.TrimSuffix(f.Name, "_id")
		}
		if f.Noun == "session" || f.Noun == "message" || f.Noun == "run" || f.Noun == "memory" || f.Noun == "blob" {
			places = append(places, f)
		}
	}
	if op.ID == "uploadFile" {
		places = append(places, ops.Field{Name: "session_id", Place: "form", Noun: "session"})
	}
	return places
}

// pathOf returns the operation's path with ids of the pool, and with what its query needs.
func pathOf(op ops.Operation, ids *pool) string {
	path, query := op.Path(), ""
	for _, f := range ops.Fields(op.In) {
		switch {
		case f.Place == ops.InPath && f.Name == "name":
			path = strings.Replace(path, "{name}", "assistant", 1)
		case f.Place == ops.InPath:
			id := ids.pick(f.Noun, 0)
			if id == "" {
				id = "1"
			}
			path = strings.Replace(path, "{"+f.Name+"}", id, 1)
		case f.Place == ops.InQuery && f.Tag.Get("required") != "":
			query = "?" + f.Name + "=word"
		}
	}
	return path + query
}

// refused asks with the asker's own ids but for one, which is not theirs.
func (w *world) refused(op ops.Operation, at ops.Field, asks, whose *owner) {
	w.t.Helper()
	ids := &pool{ids: map[string][]string{}}
	for kind, own := range asks.ids.ids {
		ids.ids[kind] = own
		if at.Place == ops.InPath && (kind == at.Noun || at.Name == "id") { // with a session of theirs, what is in it
			ids.ids[kind] = whose.ids.ids[kind]
		}
	}
	path, id := pathOf(op, ids), whose.ids.pick(at.Noun, 0)
	if at.Place == ops.InQuery {
		path += map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + at.Name + "=" + id
	}
	status, answer := w.do(asks, op.Method(), path, w.bodyOf(op, at, id), "Prefer: respond-async")
	if status != http.StatusNotFound && status != http.StatusForbidden {
		w.t.Errorf("%s by %s with %s's %s: got %d %.300s, want 404 or 403", op.Route, asks.name, whose.name, at.Name, status, answer)
	}
	w.silent(op.ID, whose, answer)
}

// open asks for what is the owner's.
func (w *world) open(op ops.Operation, o *owner) {
	w.t.Helper()
	if status, answer := w.do(o, "GET", pathOf(op, o.ids), nil); status != http.StatusOK {
		w.t.Errorf("%s by %s: got %d %.200s for whose it is, want 200", op.Route, o.name, status, answer)
	}
}

// bodyOf returns a body that the operation takes, with the id if it is to be there.
func (w *world) bodyOf(op ops.Operation, at ops.Field, id string) any {
	if op.ID == "uploadFile" {
		f := fileForm(w.t, "a.txt", "text")
		field := "--" + strings.TrimPrefix(f.media, "multipart/form-data; boundary=") + "\r\nContent-Disposition: form-data; name=\"" + at.Name + "\"\r\n\r\n" + id + "\r\n"
		return form{append([]byte(field), f.body...), f.media}
	}
	if op.Method() == http.MethodGet || op.Method() == http.MethodDelete {
		return nil
	}
	values := map[string]any{"content": "mine now", "text": "mine now", "team": "T1A", "channel": "C1A", "thread": "1700000000.000100", "pinned": true, "rating": "up", "metadata": map[string]any{"mine": "now"}}
	body := map[string]any{}
	if op.ID == "importMessages" {
		body["messages"] = []any{map[string]any{"role": "user", "content": "mine now"}}
	}
	for _, f := range ops.Fields(op.In) {
		switch value, ok := values[f.Name]; {
		case f.Place != ops.InBody:
		case f.Name == at.Name && f.Name == "parts":
			body[f.Name] = []any{map[string]any{"blob_id": id}}
		case f.Name == at.Name:
			body[f.Name] = id
		case ok:
			body[f.Name] = value
		}
	}
	return body
}

// alone asks what takes no id: nothing of the other owner's is in the answer.
func (w *world) alone(op ops.Operation, asks, whose *owner) {
	w.t.Helper()
	path, body := pathOf(op, asks.ids), any(nil)
	switch {
	case op.ID == "searchMemories":
		body = map[string]any{"query": whose.marker + " remembers"}
	case op.Method() != http.MethodGet || strings.Contains(op.Path(), "{") || op.ID == "exportUser": // a scope that keys of the configuration do not have
		return
	case op.ID == "getUsage":
		path += "?group_by=session"
	}
	status, answer := w.do(asks, op.Method(), path, body)
	compare.Equal(w.t, path+": want 200", http.StatusOK, status)
	w.silent(op.ID, whose, answer)
}

// silent fails the test if an answer has something of the owner's.
func (w *world) silent(id string, of *owner, answer []byte) {
	w.t.Helper()
	secrets := []string{of.marker}
	if id == "getUsage" {
		secrets = append(secrets, of.ids.pick("session", 0))
	}
	for _, secret := range secrets {
		compare.True(w.t, !strings.Contains(string(answer), secret), "%s: the answer has the other owner's %q: %.400s", id, secret, answer)
	}
}

// snapshot returns all that the owner sees.
func (w *world) snapshot(o *owner) map[string]string {
	w.t.Helper()
	session := "/api/v1/sessions/" + o.ids.pick("session", 0)
	out := map[string]string{}
	for _, path := range []string{"/api/v1/sessions?archived=true", session, session + "/messages?all_branches=true", session + "/runs", session + "/summaries", session + "/export",
		"/api/v1/memories", "/api/v1/blobs/" + o.ids.pick("blob", 0), "/api/v1/search?q=" + o.marker, "/api/v1/usage?group_by=session"} {
		status, answer := w.do(o, "GET", path, nil)
		out[path] = fmt.Sprintf("%d %s", status, answer)
	}
	return out
}

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
			compare.True(t, status == http.StatusOK, "%s: got %d %.200s, want 200", path, status, answer)
			for _, secret := range []string{"hushhush", "You are a helpful"} {
				compare.True(t, !strings.Contains(string(answer), secret), "%s shows an end user %q: %.600s", path, secret, answer)
			}
			if _, full := w.do(ada, "GET", path, nil); strings.Contains(string(full), "hushhush") || strings.Contains(string(full), "You are a helpful") {
				seen++
			}
		}
		compare.True(t, seen >= 6, "got the secrets in %d answers for the owner, want at least 6: is there something to hide?", seen)
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
