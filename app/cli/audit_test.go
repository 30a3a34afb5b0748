package cli_test

import (
	"slices"
	"strings"
	"testing"
)

// The audit log has what a server found changed at its start, and nothing if nothing has changed.
func TestAuditOfStarts(t *testing.T) {
	t.Parallel()
	flags := folder(t)
	serve(t, flags)()
	serve(t, flags)()
	serve(t, append(slices.Clone(flags), "--limits-queued-runs", "7"))()
	code, out, errs := run(t, "", append([]string{"audit"}, flags...)...)
	if code != 0 || strings.Count(out, "config.changed") != 2 || !strings.Contains(out, `limits.queued_runs: "7", was ""`) {
		t.Errorf("audit: got %d, %q, %q, want two starts", code, out, errs)
	}
}
