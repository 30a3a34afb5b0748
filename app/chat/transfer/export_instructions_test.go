package transfer_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"bobbin/app/chat/transfer"
	"bobbin/app/core"
	"bobbin/tests/must"
)

// instructions are those of a session.
type instructions []core.StandingInstruction

// OnPath returns them all.
func (i instructions) OnPath(context.Context, core.Tenant, core.SessionID, int) ([]core.StandingInstruction, error) {
	return i, nil
}

// An export has the standing instructions with their states, if there are any.
func TestExportHasStandingInstructions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		given instructions
		want  string
	}{
		{"none", nil, ""},
		{"none that stood", instructions{{ID: "1", Text: "Forget the budget.", Topic: "budget", Withdraws: true}}, ""},
		{"two", instructions{{ID: "1", MessageID: "a", Seq: 1, Text: "My budget is 400 €.", Topic: "budget"}, {ID: "2", MessageID: "b", Seq: 3, Text: "My budget is 500 €.", Topic: "budget"}}, "1 replaced, 2 standing"},
	} {
		w := newWorld()
		w.session.StandingCount = len(tt.given)
		s := transfer.New(transfer.Options{Sessions: sessions{world: w}, Messages: messages{world: w}, Summaries: summaries{world: w}, Instructions: tt.given, Feed: feed{world: w}, Counter: words{}})
		var out strings.Builder
		must.Do(t, s.Export(t.Context(), ann(), w.session, core.ExportJSON, &out))
		var export struct {
			StandingInstructions []core.StandingInstruction `json:"standing_instructions"`
		}
		if err := json.Unmarshal([]byte(out.String()), &export); err != nil {
			t.Fatalf("%s: %v in %s", tt.name, err, out.String())
		}
		var got []string
		for _, i := range export.StandingInstructions {
			got = append(got, string(i.ID)+" "+string(i.State))
		}
		if strings.Join(got, ", ") != tt.want || strings.Contains(out.String(), "standing_instructions") != (tt.want != "") {
			t.Errorf("%s: got %v, want %q in %s", tt.name, got, tt.want, out.String())
		}
	}
}
