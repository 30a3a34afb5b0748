package client_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"bobbin/app/client"
	"bobbin/app/core"
)

// UndoSummary goes back to the newest version that was in use before on this path: not
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
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.UndoSummary(t.Context(), "s")
			if !errors.Is(err, tt.kind) || err == nil && (got.To != tt.to || got.From != tt.active) {
				t.Errorf("got %+v and %v, want version %d", got, err, tt.to)
			}
		})
	}
}
