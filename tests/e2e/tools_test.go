package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/mcptest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// asks sends a message in a new session and returns its run, which waits. That the
// request is answered at all shows that it is not held until somebody decides.
func asks(t *testing.T, h *apptest.Bobbin, content string) core.Run {
	t.Helper()
	return asksIn(t, h, apptest.NewSession(t, h.Client, ops.NewSession{Agent: "careful"}), content)
}

func asksIn(t *testing.T, h *apptest.Bobbin, id core.SessionID, content string) core.Run {
	t.Helper()
	got, err := apptest.SendAndWait(t.Context(), h, core.SendMessage{SessionID: id, Content: content})
	must.True(t, err == nil && got.Run.Status == core.RunWaiting, "%q: got the run %s, %v, want it waiting", content, got.Run.Status, err)
	run, err := client.Call(t.Context(), h, ops.GetRun, ops.InRun{RunID: got.Run.ID})
	must.True(t, err == nil && len(run.Approvals) != 0, "got %+v, %v, want a run with questions", run, err)
	return run
}

// decide answers all questions of a run.
func decide(t *testing.T, h *apptest.Bobbin, run core.Run, in ops.Decision) {
	t.Helper()
	for _, a := range run.Approvals {
		in.RunID, in.ApprovalID = run.ID, a.ID
		must.Get(client.Call(t.Context(), h, ops.DecideApproval, in))(t)
	}
}

// ended waits for the run and returns it with what its tools answered.
func ended(t *testing.T, h *apptest.Bobbin, id core.RunID) (core.Run, []string) {
	t.Helper()
	for _, err := range h.WatchRun(t.Context(), id, core.Cursor{}) {
		must.Do(t, err)
	}
	run := must.Get(client.Call(t.Context(), h, ops.GetRun, ops.InRun{RunID: id}))(t)
	var results []string
	for _, m := range apptest.ListMessages(t, h.Client, run.SessionID) {
		if m.Role == core.RoleTool && m.RunID == id {
			results = append(results, m.ToolName+": "+m.Content)
		}
	}
	return run, results
}

func wantEnd(t *testing.T, h *apptest.Bobbin, id core.RunID, status core.RunStatus, results ...string) {
	t.Helper()
	run, got := ended(t, h, id)
	compare.True(t, run.Status == status && cmp.Equal(got, results), "the run has %s, its tools answered %q, want %s and %q", run.Status, got, status, results)
}

// A person approves and denies tool calls; calls that need nobody's approval do not wait for the others.
func TestApprovals(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		h := apptest.NewAsking(t, url)
		run := asks(t, h, "use the calculator and search_history for me")
		a := run.Approvals[0]
		if len(run.Approvals) != 1 || a.Tool != "calculator" || a.Arguments != `{"expression": "6*7"}` || a.ExpiresAt == nil || a.Status != core.ApprovalOpen {
			t.Errorf("got the questions %+v, want one for the calculator", run.Approvals)
		}
		if log := apptest.ListMessages(t, h.Client, run.SessionID); len(log) != 3 || log[2].ToolName != "search_history" {
			t.Errorf("got %d messages while it waits, want the question, the calls and the result of the free one", len(log))
		}
		decide(t, h, run, ops.Decision{Decision: "approve"})
		done, results := ended(t, h, run.ID)
		if done.Status != core.RunSucceeded || len(results) != 2 || !strings.Contains(results[1], "42") || done.Approvals != nil {
			t.Errorf("approved: got %s with %q, want the calculator's result", done.Status, results)
		}
		var told []core.EventType
		for e, err := range h.WatchRun(t.Context(), run.ID, core.Cursor{}) {
			must.Do(t, err)
			if e.Seq > 0 && e.Type != core.EventMessageCreated && !strings.HasPrefix(string(e.Type), "context.") {
				told = append(told, e.Type)
			}
		}
		want := []core.EventType{
			core.EventRunStarted, core.EventToolStarted, core.EventToolFinished, core.EventApprovalRequested, core.EventRunWaiting,
			core.EventApprovalDecided, core.EventRunStarted, core.EventToolStarted, core.EventToolFinished, core.EventRunSucceeded,
		}
		told = slices.DeleteFunc(told, func(k core.EventType) bool { return k == core.EventSessionUpdated })
		compare.Equal(t, "events", want, told)

		run = asks(t, h, "use the calculator")
		decide(t, h, run, ops.Decision{Decision: "deny", Comment: "do it in your head"})
		wantEnd(t, h, run.ID, core.RunSucceeded, "calculator: not approved: do it in your head")
		_, err := client.Call(t.Context(), h, ops.DecideApproval, ops.Decision{InRun: ops.InRun{RunID: run.ID}, ApprovalID: run.Approvals[0].ID, Decision: "approve"})
		wantProblem(t, err, core.ErrConflict, http.StatusConflict, "it was denied by local")
		compare.Equal(t, "the same again: the first answer", "do it in your head", must.Get(client.Call(t.Context(), h, ops.DecideApproval, ops.Decision{InRun: ops.InRun{RunID: run.ID}, ApprovalID: run.Approvals[0].ID, Decision: "deny"}))(t).Comment)
		_, err = client.Call(t.Context(), h, ops.DecideApproval, ops.Decision{InRun: ops.InRun{RunID: run.ID}, ApprovalID: core.NewID[core.ApprovalID](), Decision: "approve"})
		wantProblem(t, err, core.ErrNotFound, http.StatusNotFound, "does not exist")

		run = asks(t, h, "use the calculator") // of decisions at once the first one counts
		var all sync.WaitGroup
		counted := make(chan string, 8)
		for i := range cap(counted) {
			all.Go(func() {
				in := ops.Decision{InRun: ops.InRun{RunID: run.ID}, ApprovalID: run.Approvals[0].ID, Decision: []string{"approve", "deny"}[i%2]}
				if _, err := client.Call(t.Context(), h, ops.DecideApproval, in); err == nil {
					counted <- in.Decision
				}
			})
		}
		all.Wait()
		close(counted)
		first := <-counted
		for also := range counted {
			compare.Equal(t, "another one that counted", first, also)
		}
		_, results = ended(t, h, run.ID)
		compare.Contains(t, "the result", map[string]string{"approve": "42", "deny": "not approved"}[first], results[0])
	})
}

// Fetch_url as it is in production reads nothing of this machine or its networks.
func TestFetchURLRefusesThisMachine(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	secret := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(secret.Close)
	port := secret.URL[strings.LastIndexByte(secret.URL, ':')+1:]
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 32_000, 2048, apptest.NewProvider(t, provider.Options{Calls: provider.CallNamed})), func(c *config.Config) {
		c.Tools.FetchURL.Enabled, c.Tools.FetchURL.Ports = true, []string{"80", port}
	}, apptest.WithAgent("reader", "name: reader\nsystem_prompt: You read.\ntools: [fetch_url]\ntool_settings:\n  fetch_url: {timeout: 5s, approval: never}\n"))
	for _, url := range []string{secret.URL, "http://localhost:" + port, "http://[::ffff:127.0.0.1]:" + port, "http://169.254.169.254/latest/meta-data/"} {
		id := apptest.NewSession(t, h.Client, ops.NewSession{Agent: "reader"})
		got := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: fmt.Sprintf("call fetch_url {\"url\":%q}", url)})
		if m := got.Messages[2]; m.Role != core.RoleTool || m.Status != core.MessageFailed || !strings.Contains(m.Content, "does not exist or is not public") {
			t.Errorf("%s: got %s %q, want it refused", url, m.Status, m.Content)
		}
	}
	compare.Equal(t, "requests that arrived", 0, hits.Load())
}

// withTool writes a file of the folder of tools and allows all kinds.
func withTool(t *testing.T, name, text string) apptest.Setting {
	return func(c *config.Config) {
		t.Helper()
		dir := filepath.Join(filepath.Dir(c.AgentsDir), "tools")
		must.Do(t, os.MkdirAll(dir, 0o700))
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
		c.Tools.Allow = []string{"mcp", "http", "openapi", "command"}
	}
}

// mcpTool describes an MCP server that behaves in a way.
func mcpTool(t *testing.T, name, mode string) apptest.Setting {
	t.Helper()
	program, args := mcptest.Command(mode)
	return withTool(t, name+".yaml", fmt.Sprintf("name: %s\nkind: mcp\ncommand: %s\nargs: [%s, %q]\n", name, program, args[0], args[1]))
}
