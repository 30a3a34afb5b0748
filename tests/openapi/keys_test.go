package openapi_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/core"
	"bobbin/tests/dbtest"
)

// API.md: what a second request with the same Idempotency-Key does, on every operation that is a POST or PATCH. Those
// of OpenAI's are in app/api and tests/conformance.
func TestRepeatedKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dbtest.MigratedSQLiteURL(t))
	ada, kim, checked := w.settle("ada"), w.user("kim"), 0
	instruction := w.must(ada, "POST", "/api/v1/sessions/"+ada.ids.pick("session", 0)+"/standing-instructions", map[string]any{"text": "Be brief."})["id"].(string)
	ada.ids.add("standing instruction", instruction)
	for _, op := range operations() {
		if op.Method() != http.MethodPost && op.Method() != http.MethodPatch || slices.Contains([]string{"decideApproval", "fixSlackPost", "retryDelivery"}, op.ID) { // there is none
			continue
		}
		path, body, headers := pathOf(op, ada.ids), w.bodyOf(op, ops.Field{}, ""), []string{"Prefer: respond-async", "Idempotency-Key: key-" + op.ID}
		who := ada
		switch op.ID {
		case "uploadFile":
			body = fileForm(t, "a.txt", "text")
		case "searchMemories":
			body = map[string]any{"query": "word"}
		case "createDeletion":
			who, body = kim, map[string]any{"user_id": "u-" + kim.marker} // with the scope for it
		}
		status, first := w.do(who, op.Method(), path, body, headers...)
		again, second := w.do(who, op.Method(), path, body, headers...)
		same := status < 300 && status == again && string(first) == string(second)
		switch asks := slices.Contains([]string{"sendMessage", "editMessage", "regenerateMessage"}, op.ID); {
		case op.Scope == core.CanDelete:
			same = again == http.StatusUnprocessableEntity && !w.replayed
		case asks: // the key is its client_message_id, and the run goes on
			run, _, _ := strings.Cut(string(first), `,"session_id"`)
			same = status < 300 && strings.HasPrefix(string(second), run) && strings.Contains(string(second), `"key-`+op.ID) && !w.replayed
			w.do(who, op.Method(), path, body, headers[1]) // waits for the run's end: the session is not busy then
		case op.Scope == core.CanRead:
			same = status < 300 && status == again && !w.replayed
		default:
			same = same && w.replayed
		}
		if checked++; !same {
			t.Errorf("%s: got %d %.300s, and then %d %.300s, replayed %t", op.Route, status, first, again, second, w.replayed)
		}
	}
	appended, body := "/api/v1/sessions/"+ada.ids.pick("session", 0)+"/messages", map[string]any{"content": "hi", "run": false}
	status, first := w.do(ada, "POST", appended, body, "Idempotency-Key: append")
	if again, second := w.do(ada, "POST", appended, body, "Idempotency-Key: append"); status != http.StatusCreated || again != status || string(first) != string(second) {
		t.Errorf("a message without a run: got %d %.300s, and then %d %.300s", status, first, again, second)
	}
	if checked < 15 {
		t.Errorf("got %d operations, want at least 15", checked)
	}
}
