package e2e_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
)

// Lists of sessions are narrowed by what people sort them by.
func TestSessionFilters(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		h := apptest.New(t, url)
		begin := core.Now()
		pumps := apptest.NewSession(t, h.Client, ops.NewSession{Title: "Pumps", Pinned: true, Tags: []string{"work", "hall 3", "work"}, Metadata: json.RawMessage(`{"project": "p-1", "n": 3, "done": true}`)})
		bees := apptest.NewSession(t, h.Client, ops.NewSession{Title: "Bees", Tags: []string{"home"}, Metadata: json.RawMessage(`{"project": "p-2", "n": 3, "done": "true"}`)})
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: bees, Content: "Pumps are not about bees."})
		plain := apptest.NewSession(t, h.Client, ops.NewSession{})
		all := []core.SessionID{pumps, bees, plain}
		yes, no := true, false
		for name, c := range map[string]struct {
			q    core.SessionQuery
			want []core.SessionID
		}{
			"pinned":              {core.SessionQuery{Pinned: &yes}, all[:1]},
			"not pinned":          {core.SessionQuery{Pinned: &no}, all[1:]},
			"tag":                 {core.SessionQuery{Tag: "hall 3"}, all[:1]},
			"part of a tag":       {core.SessionQuery{Tag: "hall"}, nil},
			"metadata":            {core.SessionQuery{Metadata: json.RawMessage(`{"n": 3}`)}, all[:2]},
			"two members":         {core.SessionQuery{Metadata: json.RawMessage(`{"n": 3.0, "project": "p-2"}`)}, all[1:2]},
			"boolean":             {core.SessionQuery{Metadata: json.RawMessage(`{"done": true}`)}, all[:1]},
			"text like a boolean": {core.SessionQuery{Metadata: json.RawMessage(`{"done": "true"}`)}, all[1:2]},
			"quotes":              {core.SessionQuery{Metadata: json.RawMessage(`{"n') OR 1=1 --": "'"}`)}, nil},
			"words":               {core.SessionQuery{Text: "pumps"}, all[:2]},
			"words in titles":     {core.SessionQuery{Text: "pumps", TitlesOnly: true}, all[:1]},
			"idle":                {core.SessionQuery{Status: core.SessionIdle}, all},
			"running":             {core.SessionQuery{Status: core.SessionRunning}, nil},
			"created from now":    {core.SessionQuery{CreatedAfter: time.Now().Add(time.Hour)}, nil},
			"created before":      {core.SessionQuery{CreatedBefore: begin}, nil},
			"active since":        {core.SessionQuery{UpdatedAfter: begin}, all},
			"all at once":         {core.SessionQuery{Pinned: &yes, Tag: "work", Text: "pumps", Status: core.SessionIdle, CreatedAfter: begin}, all[:1]},
		} {
			page, err := client.Call(t.Context(), h, ops.ListSessions, c.q)
			var got []core.SessionID
			for _, s := range page.Items {
				got = append(got, s.ID)
			}
			slices.Sort(got)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s: got %v, %v, want %v", name, got, err, c.want)
			}
		}
		for _, q := range []string{`[1]`, `{}`, `{"a": null}`, `{"a": {"b": 1}}`, `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}`, `{`} {
			if _, err := client.Call(t.Context(), h, ops.ListSessions, core.SessionQuery{Metadata: json.RawMessage(q)}); status(err) != http.StatusUnprocessableEntity {
				t.Errorf("metadata=%s: got %v, want 422", q, err)
			}
		}
		changed, err := client.Call(t.Context(), h, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: pumps}, SessionPatch: core.SessionPatch{Pinned: &no, Tags: []string{}}})
		if err != nil || changed.Pinned || len(changed.Tags) != 0 || changed.Title != "Pumps" {
			t.Errorf("got %+v, %v, want it without pin and tags", changed, err)
		}
		if _, err := client.Call(t.Context(), h, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: pumps}, SessionPatch: core.SessionPatch{Tags: make([]string, 21)}}); status(err) != http.StatusUnprocessableEntity {
			t.Errorf("21 empty tags: got %v, want 422", err)
		}
	})
}
