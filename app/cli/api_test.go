package cli_test

import (
	"regexp"
	"strings"
	"testing"

	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// Any operation can be called: with parameters in the path and the query, with members of a body or a
// file, and with a stream as its answer.
func TestAPI(t *testing.T) {
	t.Parallel()
	flags := folder(t)
	defer serve(t, flags)()
	do := func(input, args string) string { return succeed(t, flags, input, "api "+args) }
	id, _ := fields(t, do("", `createSession title=123 tags=["a","b"] pinned=true`))["id"].(string)
	got := fields(t, do("", "getSession id="+id))
	if tags, _ := got["tags"].([]any); got["title"] != "123" || len(tags) != 2 || got["pinned"] != true {
		t.Errorf("got the session %v, want its members with their types", got)
	}
	run, _ := fields(t, do(`{"content": "hello"}`, "sendMessage --body - id="+id))["run"].(map[string]any)
	runID, _ := run["id"].(string)
	compare.Contains(t, "watchRun: want the events of the run", "\nevent: run.succeeded\n", do("", "watchRun after=0 id="+runID))
	if items, _ := fields(t, do("", "listMessages limit=1 id="+id))["items"].([]any); len(items) != 1 {
		t.Errorf("listMessages: got %v, want one", items)
	}
	out := do("", "exportSession format=markdown id="+id)
	compare.True(t, strings.HasPrefix(out, "# 123\n"), "exportSession: got %q", out)
	compare.Equal(t, "archiveSession", "", do("", "archiveSession id="+id))
}

// Every operation of the document describes itself, and is offered to shells.
func TestAPIOperations(t *testing.T) {
	t.Parallel()
	_, list, _ := run(t, "", "api")
	ids := regexp.MustCompile(`(?m)^  (\w+)  `).FindAllStringSubmatch(list, -1)
	must.True(t, len(ids) >= 70, "got %d operations in\n%s", len(ids), list)
	_, offers, _ := run(t, "", "__complete", "api", "")
	for _, id := range ids {
		if code, out, errs := run(t, "", "api", id[1], "--help"); code != 0 || !strings.HasPrefix(out, id[1]+": ") {
			t.Errorf("%s --help: got %d, %q, %q", id[1], code, out, errs)
		}
		compare.Contains(t, id[1]+" is not offered", id[1]+"\t", offers)
	}
	if _, offers, _ := run(t, "", "__complete", "api", "createMemory", "con"); !strings.HasPrefix(offers, "content=") {
		t.Errorf("parameters: got %q", offers)
	}
}
