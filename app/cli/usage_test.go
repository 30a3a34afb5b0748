package cli_test

import (
	"strings"
	"testing"
)

// bobbin usage shows what the models were used for, in a table with its total.
func TestUsage(t *testing.T) {
	t.Parallel()
	flags := folder(t)
	if code, out, errs := run(t, "", append(flags, "usage")...); code != 0 || !strings.HasPrefix(out, "no model calls from ") {
		t.Errorf("got %d, %q, %q, want that there was nothing", code, out, errs)
	}
	if code, _, errs := run(t, "hello\n", append(flags, "chat")...); code != 0 {
		t.Fatalf("chat: got %d, %q", code, errs)
	}
	for by, key := range map[string]string{"agent": "assistant", "model": "demo", "user": "–", "day": "20"} {
		code, out, errs := run(t, "", append(flags, "usage", "--by", by)...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if code != 0 || len(lines) != 4 {
			t.Fatalf("by %s: got %d, %q, %q, want a heading, a row, a total and the span", by, code, out, errs)
		}
		row, total := strings.Fields(lines[1]), strings.Fields(lines[2])
		if !strings.HasPrefix(row[0], key) || len(row) != 6 || total[0] != "total" || row[1] != total[1] || row[5] != "$0.0000" {
			t.Errorf("by %s: got %q", by, out)
		}
	}
	if code, out, errs := run(t, "", append(flags, "usage", "--json")...); code != 0 || !strings.Contains(out, `"group_by": "day"`) || !strings.Contains(out, `"next_cursor": null`) {
		t.Errorf("as JSON: got %d, %q, %q", code, out, errs)
	}
	for args, says := range map[string]string{
		"--by hour":                         `--by must be session, user, agent, model or day, not "hour"`,
		"--from yesterday":                  `--from: "yesterday" is not a day such as 2026-01-31`,
		"--from 2026-02-02 --to 2026-02-01": "to must be after from",
	} {
		if code, _, errs := run(t, "", append(append([]string{}, flags...), strings.Fields("usage "+args)...)...); code != 1 || !strings.Contains(errs, says) {
			t.Errorf("%s: got %d, %q, want %q", args, code, errs, says)
		}
	}
}
