package cli_test

import (
	"regexp"
	"strings"
	"testing"
)

// Memories are kept, listed, found, deleted and reindexed without a server that runs;
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
	wants(do(0, "memories", "list"), "no memories yet", "memories add")
	id := strings.TrimSpace(do(0, "memories", "add", "the", "inspection", "is on Friday", "--user", "carol", "--metadata", `{"from":"mail"}`))
	if !regexp.MustCompile(`^[0-9a-f-]{36}$`).MatchString(id) {
		t.Fatalf("add: got %q, want an id", id)
	}
	do(0, "memories", "add", "tea is green")
	wants(do(0, "memories", "list"), id, "carol", "the inspection is on Friday", "tea is green")
	wants(do(0, "memories", "list", "--limit", "1"), "tea is green", "more: ", "memories list --cursor ")
	wants(do(0, "memories", "search", "inspection", "Friday"), "the inspection is on Friday", "searched 2 with hashing-384-v1, which matches words")
	wants(do(0, "memories", "search", "inspection", "--user", "dave"), "searched 0 with")
	if out := do(0, "memories", "search", "inspection", "--min-score", "0.3"); strings.Contains(out, "tea") {
		t.Errorf("got %q, want only what is near", out)
	}
	wants(do(0, "memories", "reindex"), "0 embedded with hashing-384-v1, 0 rejected, 0 stale")
	wants(do(1, "memories", "delete", id, "--user", "dave"), "does not exist")
	do(0, "memories", "delete", id)
	wants(do(1, "memories", "delete", id), "does not exist")
}

func TestMemoryMistakes(t *testing.T) {
	t.Parallel()
	flags := folder(t)
	for args, says := range map[string]string{
		"memories add": "no text given: ", "memories search": "no search text given: ", "memories delete": "no memory given: ",
		"memories delete a b": "no memory given: ", "memories add x --metadata nonsense": "--metadata must be a JSON object",
		"memories lst": "did you mean", "memories search x --limit 101": "limit must be between 1 and 100",
		"memories search x --min-score high": "min-score", "memories reindex --batch 1000": "limit must be between 1 and 256",
		"memories list --embedding-model nonsense": "embedding_model: ", "memories list --embedding-model demo": "has no embeddings",
	} {
		code, out, errs := run(t, "", append(strings.Fields(args), flags...)...)
		errs = withoutFolder(errs)
		if code != 1 || out != "" || !strings.Contains(errs, says) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: got %d, %q, %q; want one line that says %q", args, code, out, errs, says)
		}
	}
}
