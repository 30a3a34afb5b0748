package openapi_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/document"
	"bobbin/tests/must"
)

// TestPages: the laws of lists, for every operation of the document that has a cursor:
// no page is longer than its limit, the pages together are the list, nothing twice and
// nothing missing, also while entries are added; the end has no cursor; a cursor that
// was not given out, or was by another list, is refused.
func TestPages(t *testing.T) {
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		w := newWorld(t, url)
		ada, bob := w.settle("ada"), w.settle("bob")
		session := "/api/v1/sessions/" + ada.ids.pick("session", 0)
		for i := range 9 {
			other := w.must(ada, "POST", "/api/v1/sessions", map[string]any{"title": fmt.Sprint(i)})["id"].(string)
			w.must(ada, "POST", "/api/v1/sessions/"+other+"/messages", map[string]any{"content": "one word"})
			w.must(ada, "POST", "/api/v1/memories", map[string]any{"content": fmt.Sprintf("memory %d", i)})
			w.must(ada, "POST", "/api/v1/blobs", fileForm(w.t, fmt.Sprintf("%d.txt", i), fmt.Sprintf("file %d", i)))
			w.must(ada, "POST", session+"/standing-instructions", map[string]any{"text": fmt.Sprintf("Remember the code%d.", i)})
			w.must(ada, "POST", session+"/messages", map[string]any{"content": fmt.Sprintf("word %d %s", i, strings.Repeat("and more ", 30))})
			if i < 4 {
				w.must(ada, "POST", session+"/summarize", nil)
			}
		}
		cursors := map[string]string{}
		for _, l := range w.lists(ada) {
			cursors[l.op.ID] = w.pages(ada, l)
		}
		must.True(t, len(cursors) >= 7, "got the lists %v, want at least 7", cursors)
		for _, l := range w.lists(ada) {
			w.badCursors(ada, l, cursors)
		}
		for _, l := range w.lists(bob) {
			w.othersCursor(bob, ada, l, cursors[l.op.ID])
		}
	})
}

// list is a list of an owner.
type list struct {
	op   *document.Operation
	path string     // without limit and cursor
	add  func() int // adds an entry; nil = nothing can be added; returns how many it added
}

// lists returns all lists that the document has.
func (w *world) lists(o *owner) []list {
	session := "/api/v1/sessions/" + o.ids.pick("session", 0)
	add := map[string]func() int{
		"listSessions": func() int { w.must(o, "POST", "/api/v1/sessions", nil); return 1 },
		"listMessages": func() int {
			w.must(o, "POST", session+"/messages", map[string]any{"content": "later word", "run": false})
			return 1
		},
		"listMemories": func() int {
			w.must(o, "POST", "/api/v1/memories", map[string]any{"content": "a later one"})
			return 1
		},
		"search": func() int {
			w.must(o, "POST", session+"/messages", map[string]any{"content": "word that came later", "run": false})
			return 1
		},
	}
	var all []list
	for _, op := range w.doc.Operations {
		cursor := slices.ContainsFunc(op.Params, func(p document.Param) bool { return p.Name == "cursor" })
		if !cursor {
			continue
		}
		path := op.Path
		for _, p := range op.Params {
			path = strings.Replace(path, "{"+p.Name+"}", o.ids.pick(kindOf(op.Path, p.Name), 0), 1)
		}
		path += "?"
		switch op.ID {
		case "search":
			path += "q=word&"
		case "getUsage":
			path += "group_by=session&"
		}
		all = append(all, list{op, path, add[op.ID]})
	}
	return all
}

// page returns the keys of one page, and the next cursor.
func (w *world) page(o *owner, l list, limit int, cursor string) (keys []string, next string) {
	w.t.Helper()
	path := fmt.Sprintf("%slimit=%d", l.path, limit)
	if cursor != "" {
		path += "&cursor=" + url.QueryEscape(cursor)
	}
	answer := w.must(o, "GET", path, nil)
	items := answer["items"].([]any)
	compare.True(w.t, len(items) <= limit, "%s: got %d items, want at most %d", path, len(items), limit)
	for _, item := range items {
		keys = append(keys, keyOf(item.(map[string]any)))
	}
	next, _ = answer["next_cursor"].(string)
	return keys, next
}

// keyOf returns what an entry of a list differs in from all others.
func keyOf(item map[string]any) string {
	for _, name := range []string{"id", "message_id", "key"} {
		if key, ok := item[name].(string); ok {
			return key
		}
	}
	return fmt.Sprint(item)
}

// all returns the keys of all pages of that many entries; between two of them it does
// what is given.
func (w *world) all(o *owner, l list, limit int, between func()) (keys []string, first string) {
	w.t.Helper()
	cursor := ""
	for range 500 {
		page, next := w.page(o, l, limit, cursor)
		keys = append(keys, page...)
		if next == "" {
			return keys, first
		}
		if first == "" {
			first = next
		}
		cursor = next
		if between != nil {
			between()
		}
	}
	w.t.Fatalf("%s: no end after 500 pages", l.op.ID)
	return nil, ""
}

// pages checks the laws for one list and returns a cursor of it.
func (w *world) pages(o *owner, l list) string {
	w.t.Helper()
	whole, _ := w.all(o, l, 200, nil)
	if len(whole) < 4 {
		w.t.Fatalf("%s: got %d entries, want some", l.op.ID, len(whole))
	}
	first := ""
	for _, limit := range []int{1, 2, 3, len(whole), len(whole) + 1} {
		keys, cursor := w.all(o, l, limit, nil)
		compare.Equal(w.t, fmt.Sprintf("%s by %d", l.op.ID, limit), whole, keys)
		if limit >= len(whole) && cursor != "" {
			w.t.Errorf("%s by %d: got a cursor after %d entries, want none", l.op.ID, limit, len(whole))
		}
		if first == "" {
			first = cursor
		}
	}
	if l.add == nil {
		return first
	}
	added := 0
	keys, _ := w.all(o, l, 2, func() {
		if added < 5 {
			added += l.add()
		}
	})
	seen := map[string]int{}
	for _, key := range keys {
		seen[key]++
		if seen[key] > 1 {
			w.t.Errorf("%s: %s came twice while entries were added", l.op.ID, key)
		}
	}
	for _, key := range whole {
		if seen[key] == 0 {
			w.t.Errorf("%s: %s was missing while entries were added", l.op.ID, key)
		}
	}
	return first
}

// badCursors checks that what is no cursor of the list is refused.
func (w *world) badCursors(o *owner, l list, cursors map[string]string) {
	w.t.Helper()
	bad := map[string]string{"nonsense": "nonsense", "one letter": "A", "a NUL": "\x00", "bytes": "\xff", "too long": strings.Repeat("A", 2000)}
	good := cursors[l.op.ID]
	bad["a cut one"] = good[:len(good)/2]
	raw := must.Get(base64.RawURLEncoding.DecodeString(good))(w.t)
	if id := regexp.MustCompile(`"i":"[^"]+"`); id.Match(raw) {
		bad["an id that is none"] = base64.RawURLEncoding.EncodeToString(id.ReplaceAll(raw, []byte(`"i":"x"`)))
	}
	for id, cursor := range cursors {
		if id != l.op.ID {
			bad["one of "+id] = cursor
		}
	}
	for what, cursor := range bad {
		status, answer := w.do(o, "GET", l.path+"cursor="+url.QueryEscape(cursor), nil)
		if status != http.StatusUnprocessableEntity && status != http.StatusBadRequest {
			w.t.Errorf("%s with %s (%.80q) as cursor: got %d %.200s, want 422", l.op.ID, what, cursor, status, answer)
		}
	}
}

// othersCursor checks that another owner's cursor shows nothing of that owner's.
func (w *world) othersCursor(o, other *owner, l list, cursor string) {
	w.t.Helper()
	status, answer := w.do(o, "GET", l.path+"cursor="+url.QueryEscape(cursor), nil)
	if status >= http.StatusInternalServerError {
		w.t.Errorf("%s with the other owner's cursor: got %d", l.op.ID, status)
	}
	w.silent(l.op.ID, other, answer)
}
