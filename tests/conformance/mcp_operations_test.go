package conformance_test

import (
	"strings"
	"testing"

	"bobbin/app/core"
)

// mcpOperation is something that a host does.
type mcpOperation struct {
	name string
	run  func(t *testing.T, u *mcpUser)
}

func mcpOperations() []mcpOperation {
	return []mcpOperation{
		{"connect", mcpConnect},
		{"tools: list, schemas, annotations", mcpListTools},
		{"send_message, a conversation", mcpConversation},
		{"a long answer, whole", mcpLongAnswer},
		{"progress while a run is waited for", mcpProgress},
		{"a call that times out, its run goes on", mcpTimeout},
		{"resources: list, templates, read", mcpResources},
		{"errors: arguments, unknown tool, unknown resource", mcpErrors},
		{"100 calls at once", mcpHundred},
	}
}

func mcpConnect(t *testing.T, u *mcpUser) {
	got := get[struct {
		Server                 struct{ Name string }
		Instructions, Revision string
	}](t, u, "connect", nil)
	if got.Server.Name != "bobbin" || !strings.Contains(got.Instructions, "wait_for_run") || got.Revision != u.kind.revision {
		t.Errorf("got %+v, want bobbin with revision %s", got, u.kind.revision)
	}
}

func mcpListTools(t *testing.T, u *mcpUser) {
	got := get[struct {
		Tools []struct {
			Name, Title, Description  string
			InputSchema, OutputSchema struct {
				Type                 string
				AdditionalProperties any
			}
			Annotations struct{ ReadOnlyHint, DestructiveHint *bool }
		}
	}](t, u, "listTools", nil)
	wantEqual(t, "tools", len(got.Tools), 12)
	for _, tool := range got.Tools {
		if tool.Title == "" || tool.Description == "" || tool.InputSchema.Type != "object" || tool.OutputSchema.Type != "object" || tool.Annotations.ReadOnlyHint == nil || tool.Annotations.DestructiveHint == nil {
			t.Errorf("got the tool %+v, want it described", tool)
		}
	}
}

// say sends a message that is answered.
func (u *mcpUser) say(t *testing.T, content string, more object) mcpRun {
	t.Helper()
	arguments := object{"content": content + " (" + u.mark + ")", "wait_seconds": 100}
	for name, value := range more {
		arguments[name] = value
	}
	return use[mcpRun](t, u, "send_message", arguments)
}

func mcpConversation(t *testing.T, u *mcpUser) {
	first := u.say(t, "the bees of the garden", nil)
	second := u.say(t, "and the wasps", object{"session_id": first.SessionID})
	if first.Status != core.RunSucceeded || !strings.Contains(first.Answer, "bees") || second.SessionID != first.SessionID || !strings.Contains(second.Answer, "wasps") {
		t.Errorf("got %+v and %+v, want both answered in a session", first, second)
	}
	wantEqual(t, "answer afterwards", use[mcpRun](t, u, "wait_for_run", object{"run_id": first.RunID}).Answer, first.Answer)
}

func mcpLongAnswer(t *testing.T, u *mcpUser) {
	got := u.say(t, "speak at length", nil)
	if want := say("speak at length (" + u.mark + ")"); !strings.Contains(got.Answer, want) {
		t.Errorf("got %q, want it to have %q", got.Answer, want)
	}
}

// hold begins a run whose answer is held.
func (u *mcpUser) hold(t *testing.T, mark string) (mcpRun, *gate) {
	t.Helper()
	held := u.gates.add(t, mark+" ("+u.mark)
	run := u.say(t, mark, object{"wait_seconds": 0})
	<-held.asked
	return run, held
}

func mcpProgress(t *testing.T, u *mcpUser) {
	run, held := u.hold(t, "progress please")
	out := u.do(t, "callTool", object{"name": "wait_for_run", "progress": true, "arguments": object{"run_id": run.RunID, "wait_seconds": 1}})
	if out.fault != nil || len(out.events) == 0 {
		t.Errorf("got %d notifications, %s, want some", len(out.events), out.fault)
	}
	held.release()
	wantEqual(t, "status", use[mcpRun](t, u, "wait_for_run", object{"run_id": run.RunID}).Status, core.RunSucceeded)
}

func mcpTimeout(t *testing.T, u *mcpUser) {
	run, held := u.hold(t, "hold on")
	out := u.do(t, "callTool", object{"name": "wait_for_run", "timeout": 300, "arguments": object{"run_id": run.RunID, "wait_seconds": 100}})
	if out.fault == nil {
		t.Errorf("got %s, want an error", out.result)
	}
	wantEqual(t, "status", use[mcpRun](t, u, "wait_for_run", object{"run_id": run.RunID, "wait_seconds": 0}).Status, core.RunRunning)
	held.release()
	wantEqual(t, "status", use[mcpRun](t, u, "wait_for_run", object{"run_id": run.RunID}).Status, core.RunSucceeded)
}

func mcpResources(t *testing.T, u *mcpUser) {
	run := u.say(t, "resources", nil)
	uri := "bobbin://sessions/" + run.SessionID + "/context"
	found := false
	for _, r := range get[struct{ Resources []struct{ URI string } }](t, u, "listResources", nil).Resources {
		found = found || r.URI == uri
	}
	wantEqual(t, "listed", found, true)
	wantEqual(t, "templates", len(get[struct{ ResourceTemplates []any }](t, u, "listResourceTemplates", nil).ResourceTemplates), 3)
	read := get[struct{ Contents []struct{ Text string } }](t, u, "readResource", object{"uri": uri})
	if len(read.Contents) != 1 || !strings.Contains(read.Contents[0].Text, `"window":100000`) {
		t.Errorf("got %+v, want the report", read)
	}
}

func mcpErrors(t *testing.T, u *mcpUser) {
	u.wantFailure(t, "contents is not a known field (did you mean content?)", "send_message", object{"contents": "x"})
	u.wantFailure(t, "does not exist; the agents are", "send_message", object{"content": "x", "agent": "nobody"})
	if out := u.do(t, "callTool", object{"name": "drop_tables", "arguments": object{}}); out.fault == nil || !strings.Contains(out.fault.Message, "unknown tool") {
		t.Errorf("got %s, %s, want an unknown tool", out.result, out.fault)
	}
	if out := u.do(t, "readResource", object{"uri": "bobbin://sessions/none/context"}); out.fault == nil || !strings.Contains(out.fault.Message, "not found") {
		t.Errorf("got %s, %s, want it not found", out.result, out.fault)
	}
}

func mcpHundred(t *testing.T, u *mcpUser) {
	answers := make(chan *fault, 100)
	for range 100 {
		go func() {
			answers <- u.do(t, "callTool", object{"name": "list_sessions", "arguments": object{"limit": 1}}).fault
		}()
	}
	for range 100 {
		if f := <-answers; f != nil {
			t.Error(f)
		}
	}
}
