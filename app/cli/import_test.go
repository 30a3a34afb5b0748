package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const foreign = `{"role":"user","content":"my name is Ada"}
{"type":"ai","data":{"content":"","tool_calls":[{"id":"c1","name":"calculator","args":{"expression": "1+1"}}]}}
{"role":"tool","tool_call_id":"c1","content":"2"}
{"lc":1,"type":"constructor","id":["AIMessage"],"kwargs":{"content":"Hello Ada."}}
`

// A conversation comes in and goes out; transfer.TestRoundTrip and TestShapes hold what it has then.
func TestImportAndExport(t *testing.T) {
	t.Parallel()
	flags := folder(t)
	dir := t.TempDir()
	do := func(wantCode int, input string, args ...string) (out, errs string) {
		t.Helper()
		code, out, errs := run(t, input, append(args, flags...)...)
		if code != wantCode {
			t.Fatalf("%q: got %d, %q, %q; want %d", args, code, out, errs, wantCode)
		}
		return out, errs
	}
	file := filepath.Join(dir, "old chat.jsonl")
	if err := os.WriteFile(file, []byte(foreign), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs := do(0, "", "import", file)
	id := regexp.MustCompile(`into session (\S{36})`).FindStringSubmatch(out)
	if id == nil || !strings.HasPrefix(out, "imported 4 messages (") || withoutFolder(errs) != "" {
		t.Fatalf("import: %q, %q", out, errs)
	}
	copied := filepath.Join(dir, "copy.json")
	if out, errs := do(0, "", "sessions", "export", id[1], "-o", copied); out != "" || !strings.Contains(errs, "bytes in "+copied) {
		t.Errorf("export: %q, %q", out, errs)
	}
	for _, tt := range []struct{ says, input, args string }{
		{"which file? bobbin import <file|->", "", "import"},
		{"no such file", "", "import /no/such/file"},
		{"no session id begins with 123", foreign, "import - --session 123"},
		{"nothing was imported\n  line 1: is not a JSON object\n  line 2: tool_call_id is missing", "x\n{\"role\":\"tool\",\"content\":\"x\"}", "import -"},
		{"none of the others can be", foreign, "import - --session x --title y"},
		{"which session?", "", "sessions export"},
		{"no session id begins with 123", "", "sessions export 123"},
		{"format must be json, jsonl or markdown", "", "sessions export " + id[1] + " --format pdf"},
		{"no such file", "", "sessions export " + id[1] + " -o /no/such/folder/x"},
	} {
		if _, errs := do(1, tt.input, strings.Fields(tt.args)...); !strings.Contains(errs, tt.says) {
			t.Errorf("%q: got %q, want %q", tt.args, errs, tt.says)
		}
	}
	// What cannot be imported leaves no session behind, nor half a file.
	if out, _ := do(0, "", "sessions", "list"); strings.Count(out, "\n") != 2 || !strings.Contains(out, "old chat") {
		t.Errorf("list: %q, want one session with the name of the file", out)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("got %v, %v, want the two files", left, err)
	}
}
