package e2e_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
)

// Whoever does not want to wait gets the run, and the answer later; who asks for it hears of
// progress. A call that is broken off does not cancel its run.
func TestMCPLongRun(t *testing.T) {
	t.Parallel()
	p, g := newHolding(t)
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 8192, 2048, p))
	host := newHost(t, h, "", revision2026)
	begun := use[reply](host, "send_message", arguments{"content": "hold this", "wait_seconds": 0})
	if begun.Status.Ended() || begun.RunID == "" || !strings.Contains(begun.Next, "wait_for_run") {
		t.Fatalf("got %+v, want a run to wait for", begun)
	}
	<-g.arrived
	for _, revision := range []string{revision2025, revision2026} {
		ctx, cancel := context.WithCancel(t.Context())
		waiting := newHost(t, h, "", revision)
		params := &mcp.CallToolParams{Name: "wait_for_run", Arguments: arguments{"run_id": begun.RunID, "wait_seconds": 300}}
		params.SetProgressToken("token")
		ended := make(chan error, 1)
		go func() {
			_, err := waiting.CallTool(ctx, params)
			ended <- err
		}()
		for waiting.heard() == 0 {
			apptest.PauseBriefly(t)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v of a call that was broken off", revision, err)
		}
	}
	if run := apptest.Must(h.Run(t.Context(), begun.RunID))(t); run.Status != core.RunRunning {
		t.Errorf("got the run %s after the calls were broken off, want it running", run.Status)
	}
	g.open()
	if got := use[reply](host, "wait_for_run", arguments{"run_id": begun.RunID}); got.Status != core.RunSucceeded || !strings.Contains(got.Answer, "hold this") {
		t.Errorf("got %+v, want the answer", got)
	}
}

// heard returns how many progress notifications came.
func (p *host) heard() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.progress)
}

// A run that waits for a person says so, with the ids; a person's decision, not a tool,
// lets it continue.
func TestMCPApproval(t *testing.T) {
	t.Parallel()
	h := apptest.NewAsking(t, dbtest.MigratedSQLiteURL(t))
	host := newHost(t, h, "", revision2025)
	got := use[reply](host, "send_message", arguments{"content": "use the calculator please", "agent": "careful"})
	if got.Status != core.RunWaiting || len(got.Approvals) != 1 || got.Approvals[0].Tool != "calculator" || !strings.Contains(got.Next, string(got.RunID)) {
		t.Fatalf("got %+v, want a run that waits for a person", got)
	}
	apptest.Must(h.Decide(t.Context(), got.RunID, got.Approvals[0].ApprovalID, core.ApprovalDecision{Approve: true}))(t)
	if got = use[reply](host, "wait_for_run", arguments{"run_id": got.RunID}); got.Status != core.RunSucceeded || got.Answer == "" {
		t.Errorf("got %+v, want the answer", got)
	}
}
