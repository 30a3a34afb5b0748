package chat_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"bobbin/app/cli/chat"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/must"
)

// /undo goes back to the newest version that was in use before on this path: not
// one that was taken back, made ahead, of a run or of another branch, nor what the one
// in use repeats; without any it is none at all.
func TestUndoSummary(t *testing.T) {
	t.Parallel()
	now := core.Now()
	text, through := "in use", core.MessageID("m5")
	version := func(n int, state core.SummaryState, content string) core.Summary {
		return core.Summary{Version: n, Kind: core.SummaryRolling, State: state, Content: content, ThroughID: through, ActivatedAt: &now}
	}
	ahead, run := version(6, core.SummaryDropped, "made ahead"), version(5, core.SummaryDropped, "of a run")
	ahead.ActivatedAt, run.Kind = nil, core.SummaryRun
	pages := map[string]core.Page[core.Summary]{
		"":     {Items: []core.Summary{version(9, core.SummaryPrepared, "next"), version(8, core.SummaryActive, text), version(7, core.SummaryUndone, "undone"), ahead, run}},
		"more": {Items: []core.Summary{version(4, core.SummaryDropped, text), version(3, core.SummaryDropped, "another branch"), version(2, core.SummaryDropped, "before"), version(1, core.SummaryDropped, "first")}},
	}
	next := "more"
	first := pages[""]
	first.NextCursor = &next
	pages[""] = first
	for name, tt := range map[string]struct {
		active int
		bad    []string // versions that cannot be restored
		to     int
		kind   error
	}{
		"the version before": {8, []string{"3"}, 2, nil},
		"nothing is left":    {8, []string{"3", "2", "1"}, 0, nil},
		"no summary":         {0, nil, 0, core.ErrUnprocessable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answer := any(core.Session{SummaryVersion: tt.active, ConversationSummary: &text, SummaryThroughID: &through})
				switch path := r.URL.Path; {
				case strings.HasSuffix(path, "/summaries"):
					answer = pages[r.URL.Query().Get("cursor")]
				case strings.HasSuffix(path, "/restore"):
					parts := strings.Split(path, "/")
					for _, bad := range tt.bad {
						if parts[len(parts)-2] == bad {
							w.Header().Set("Content-Type", "application/problem+json")
							w.WriteHeader(http.StatusUnprocessableEntity)
							answer = map[string]any{"status": 422, "code": "unprocessable", "detail": "on another branch"}
						}
					}
				}
				if err := json.NewEncoder(w).Encode(answer); err != nil {
					t.Error(err)
				}
			}))
			defer server.Close()
			c, err := client.New(client.Options{URL: server.URL})
			must.Do(t, err)
			var out strings.Builder
			err = chat.New(chat.Options{Service: c, Session: core.Session{ID: "s"}, Lines: &typed{lines: []string{"/undo"}}, Out: &out, Size: func() (int, int) { return 0, 0 }}).Run(t.Context())
			if want := fmt.Sprintf("restored version %d as version 8: it covers 0 of 0 messages; to undo: /summary restore %[2]d\n", tt.to, tt.active); !errors.Is(err, tt.kind) || err == nil && !strings.Contains(out.String(), want) {
				t.Errorf("got %q and %v, want %q", out.String(), err, want)
			}
		})
	}
}
