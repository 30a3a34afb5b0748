package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"bobbin/app/api"
	"bobbin/app/core"
	"bobbin/tests/apitest"
)

// A long page is written in pieces and is the JSON that a short one is.
func TestLongPages(t *testing.T) {
	t.Parallel()
	backend := apitest.New()
	want := backend.Messages
	for i := range 50 {
		m := backend.Messages[i%2]
		m.Content = strings.Repeat("<ä\x01 ", i*1000)
		want = append(want, m)
	}
	backend.Messages = want
	opts, _ := options(backend)
	w := do(api.New(opts), request("GET", sessionPath+"/messages", ""))
	var got struct {
		Items       []core.Message
		NextCursor  *string         `json:"next_cursor"`
		Pending     []core.Message  `json:"pending"`
		LastEventID int64           `json:"last_event_id"`
		More        json.RawMessage `json:"more"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("got %d %s, %v, want JSON", w.Code, w.Header().Get("Content-Type"), err)
	}
	if len(got.Items) != len(want) || len(got.Pending) != 1 || got.LastEventID != 4 || !strings.HasSuffix(w.Body.String(), "}\n") {
		t.Fatalf("got %d items, %d pending, last event %d, want %d, 1 and 4", len(got.Items), len(got.Pending), got.LastEventID, len(want))
	}
	for i, m := range got.Items {
		if m.Content != want[i].Content {
			t.Errorf("item %d: got %d bytes, want %d", i, len(m.Content), len(want[i].Content))
		}
	}
}

// A page that cannot be written whole is an error.
func TestBrokenPages(t *testing.T) {
	t.Parallel()
	backend := apitest.New()
	broken := backend.Messages[1]
	broken.Metadata = json.RawMessage("{")
	backend.Messages = append(backend.Messages, broken)
	opts, _ := options(backend)
	wantProblem(t, do(api.New(opts), request("GET", sessionPath+"/messages", "")), 500, "internal")
}
