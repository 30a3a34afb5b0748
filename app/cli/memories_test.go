package cli_test

import (
	"strings"
	"testing"
)

// Memories are listed and deleted without a server that runs;
// TestRemoteServer has the same with one.
func TestMemories(t *testing.T) {
	t.Parallel()
	flags := folder(t)
	do := func(code int, args ...string) string {
		t.Helper()
		got, out, errs := run(t, "", append(args, flags...)...)
		if got != code {
			t.Fatalf("%q: got %d, %q, %q; want %d", args, got, out, errs, code)
		}
		return out + errs
	}
	wants := func(out string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(out, part) {
				t.Errorf("got %q, want %q in it", out, part)
			}
		}
	}
	wants(do(0, "memories", "list"), "no memories yet", "api createMemory 'content=the inspection is on Friday'")
	id, _ := fields(t, do(0, "api", "createMemory", "content=the inspection is on Friday", "user_id=carol", `metadata={"from":"mail"}`))["id"].(string)
	do(0, "api", "createMemory", "content=tea is green")
	wants(do(0, "memories", "list"), id, "carol", "the inspection is on Friday", "tea is green")
	wants(do(0, "memories", "list", "--limit", "1"), "tea is green", "more: ", "memories list --cursor ")
	wants(do(0, "api", "searchMemories", "query=inspection Friday", "limit=1"), "the inspection is on Friday", `"searched": 2`)
	wants(do(0, "api", "reindexMemories", "all_owners=true"), `"embedded": 0`)
	wants(do(1, "memories", "delete", id, "--user", "dave"), "does not exist")
	do(0, "memories", "delete", id)
	wants(do(1, "memories", "delete", id), "does not exist")
}

func TestMemoryMistakes(t *testing.T) {
	t.Parallel()
	flags := folder(t)
	for args, says := range map[string]string{
		"memories delete":                          "no memory given: ",
		"memories delete a b":                      "no memory given: ",
		"memories lst":                             "did you mean",
		"memories list --embedding-model nonsense": "embedding_model: ", "memories list --embedding-model demo": "has no embeddings",
	} {
		code, out, errs := run(t, "", append(strings.Fields(args), flags...)...)
		errs = withoutFolder(errs)
		if code != 1 || out != "" || !strings.Contains(errs, says) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: got %d, %q, %q; want one line that says %q", args, code, out, errs, says)
		}
	}
}
