package cli_test

import (
	"regexp"
	"strings"
	"testing"

	"bobbin/tests/compare"
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
	if out := do("", "exportSession format=markdown id="+id); !strings.HasPrefix(out, "# 123\n") {
		t.Errorf("exportSession: got %q", out)
	}
	compare.Equal(t, "archiveSession", "", do("", "archiveSession id="+id))
}

// What somebody mistyped is told before anything is sent.
func TestAPIMistakes(t *testing.T) {
	t.Parallel()
	for args, says := range map[string]string{
		"creatMemory":                            "the API has no operation creatMemory; did you mean createMemory?",
		"xyzzy":                                  "the API has no operation xyzzy; ",
		"createMemory contnet=x":                 "createMemory has no parameter contnet; did you mean content?",
		"createMemory xyzzy=x":                   "createMemory has no parameter xyzzy; it has Idempotency-Key, ",
		"createMemory content":                   "content has no value: write content=…",
		"createMemory":                           "createMemory needs content=…; ",
		"getSession":                             "getSession needs id=…; ",
		"version x=1":                            "version has no parameters, not x=1",
		"createMemory --body nosuch":             "open nosuch: no such file",
		"createMemory --body nosuch user_id=ann": "give either --body or members of the body, not both",
		"getSession id=x --body nosuch":          "getSession has no body",
		"uploadFile":                             "uploadFile takes a form",
	} {
		code, out, errs := run(t, "", append([]string{"api"}, strings.Fields(args)...)...)
		if code != 1 || out != "" || !strings.HasPrefix(errs, "bobbin: "+says) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: got %d, %q, %q; want one line that says %q", args, code, out, errs, says)
		}
	}
}

// Every operation of the document describes itself, and is offered to shells.
func TestAPIOperations(t *testing.T) {
	t.Parallel()
	_, list, _ := run(t, "", "api")
	ids := regexp.MustCompile(`(?m)^  (\w+)  `).FindAllStringSubmatch(list, -1)
	if len(ids) < 70 {
		t.Fatalf("got %d operations in\n%s", len(ids), list)
	}
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
