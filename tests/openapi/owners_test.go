package openapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/tests/dbtest"
	"bobbin/tests/document"
)

// TestOwners: every operation of the document and every place in it where an id
// stands, in the path, the query or the body: the second owner with the ids of the
// first gets 404 (or 403), sees nothing of them, and changes nothing.
func TestOwners(t *testing.T) {
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		w := newWorld(t, url)
		ada, bob := w.settle("ada"), w.settle("bob")
		before := w.snapshot(ada)
		refusals := 0
		for _, op := range w.doc.Operations {
			if op.ID == "watchSessions" { // it does not end: e2e.TestHeadsOfUsers, events.TestHeads
				continue
			}
			cases := theirs(w.doc, op)
			if len(cases) == 0 {
				w.alone(op, bob, ada)
			}
			for _, c := range cases {
				w.refused(op, c, bob, ada)
				refusals++
			}
		}
		if diff := cmp.Diff(before, w.snapshot(ada)); diff != "" {
			t.Errorf("what is the first owner's has changed (-before +after):\n%s", diff)
		}
		if refusals < 30 {
			t.Errorf("got %d refusals, want at least 30: is the document read at all?", refusals)
		}
	})
}

// place is somewhere in a request where another owner's id stands.
type place struct {
	where string // "path id", "query session_id", "body message_id" …
	in    string
	name  string
	kind  string
}

// theirs returns the places of an operation where an id may stand.
func theirs(d *document.Document, op *document.Operation) []place {
	var places []place
	for _, p := range op.Params {
		kind := kindOf(op.Path, p.Name)
		if p.Name == "session_id" {
			kind = "session"
		}
		if kind != "" {
			places = append(places, place{p.In + " " + p.Name, p.In, p.Name, kind})
		}
	}
	for media, schema := range op.Body {
		properties, _ := schema.Raw["properties"].(map[string]any)
		for name, raw := range properties {
			switch {
			case name == "message_id" || name == "session_id":
				places = append(places, place{"body " + name, media, name, strings.TrimSuffix(name, "_id")})
			case name == "parts" && media == "application/json":
				items := d.Resolve(d.Resolve(raw.(map[string]any))["items"].(map[string]any))
				if _, ok := items["properties"].(map[string]any)["blob_id"]; ok {
					places = append(places, place{"body parts.blob_id", media, name, "blob"})
				}
			}
		}
	}
	slices.SortFunc(places, func(a, b place) int { return strings.Compare(a.where, b.where) })
	return places
}

// refused asks as bob, with his own ids but for the one of ada's, and returns what the
// answer was.
func (w *world) refused(op *document.Operation, c place, bob, ada *owner) {
	w.t.Helper()
	path, query := op.Path, ""
	for _, p := range op.Params {
		kind := kindOf(op.Path, p.Name)
		id := bob.ids.pick(kind, 0)
		if c.in == "path" && (p.Name == c.name || c.name == "id") { // with a session of ada's, what is in it
			id = ada.ids.pick(kind, 0)
		}
		if kind == "" {
			id = "1"
		}
		path = strings.Replace(path, "{"+p.Name+"}", id, 1)
		if p.In == "query" && p.Required {
			query = "&" + p.Name + "=word"
		}
	}
	if c.in == "query" {
		query += "&" + c.name + "=" + ada.ids.pick(c.kind, 0)
	}
	if query != "" {
		path += "?" + query[1:]
	}
	status, answer := w.do(bob, op.Method, path, w.bodyOf(op, c, ada), "Prefer: respond-async")
	if status != http.StatusNotFound && status != http.StatusForbidden {
		w.t.Errorf("%s %s with the other owner's %s: got %d %.300s, want 404 or 403", op.Method, path, c.where, status, answer)
	}
	w.silent(op, ada, answer)
	if op.Method == http.MethodGet && op.Answers[http.StatusOK].Events == nil &&
		c.name != "mid" && !strings.HasSuffix(path, "/content") { // with that the session is not ada's; without a link's signature nobody has the content
		if own, _ := w.do(ada, op.Method, path, nil); own != http.StatusOK && (ada.isKey() || w.forUsers(op)) {
			w.t.Errorf("%s %s: got %d for whose it is, want 200", op.Method, path, own)
		}
	}
}

// bodyOf returns a body that the operation takes, with ada's id if it is to be there.
func (w *world) bodyOf(op *document.Operation, c place, ada *owner) any {
	id := ada.ids.pick(c.kind, 0)
	switch {
	case c.in == "multipart/form-data":
		f := fileForm(w.t, "a.txt", "text")
		field := "--" + strings.TrimPrefix(f.media, "multipart/form-data; boundary=") + "\r\nContent-Disposition: form-data; name=\"" + c.name + "\"\r\n\r\n" + id + "\r\n"
		return form{append([]byte(field), f.body...), f.media}
	case op.Body == nil:
		return nil
	}
	body := map[string]any{}
	schema, ok := op.Body["application/json"]
	if !ok {
		return fileForm(w.t, "a.txt", "text")
	}
	properties, _ := schema.Raw["properties"].(map[string]any)
	if _, ok := properties["content"]; ok {
		body["content"] = "mine now"
	}
	for name, value := range map[string]any{"text": "mine now", "team": "T1A", "channel": "C1A", "thread": "1700000000.000100", "pinned": true, "rating": "up", "metadata": map[string]any{"mine": "now"}} {
		if _, ok := properties[name]; ok {
			body[name] = value
		}
	}
	if op.ID == "importMessages" {
		body["messages"] = []any{map[string]any{"role": "user", "content": "mine now"}}
	}
	switch {
	case c.in == "application/json" && c.kind == "blob":
		body["parts"] = []any{map[string]any{"blob_id": id}}
	case c.in == "application/json":
		body[c.name] = id
	}
	return body
}

// alone asks what takes no id, and returns what the answer was: nothing of ada's is in
// it.
func (w *world) alone(op *document.Operation, bob, ada *owner) {
	w.t.Helper()
	path, body := op.Path, any(nil)
	switch {
	case op.ID == "searchMemories":
		body = map[string]any{"query": ada.marker + " remembers"}
	case op.Method != http.MethodGet || strings.Contains(op.Path, "{"):
		return
	case op.ID == "exportUser": // a scope that keys of the configuration do not have
		return
	}
	if op.ID == "getUsage" {
		path += "?group_by=session"
	}
	status, answer := w.do(bob, op.Method, path, body)
	if status != http.StatusOK {
		w.t.Errorf("%s: got %d, want 200", path, status)
	}
	w.silent(op, ada, answer)
}

// silent fails the test if an answer has something of the owner's.
func (w *world) silent(op *document.Operation, of *owner, answer []byte) {
	w.t.Helper()
	secrets := []string{of.marker}
	if strings.HasPrefix(op.Path, "/api/v1/usage") {
		secrets = append(secrets, of.ids.pick("session", 0))
	}
	for _, secret := range secrets {
		if strings.Contains(string(answer), secret) {
			w.t.Errorf("%s %s: the answer has the other owner's %q: %.400s", op.Method, op.Path, secret, answer)
		}
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
