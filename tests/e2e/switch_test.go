package e2e_test

import (
	"encoding/json"
	"testing"

	"bobbin/app/client"
	"bobbin/app/core"
)

// reported returns the context report of a run's last model call.
func reported(t testing.TB, c *client.Client, id core.RunID) core.ContextReport {
	t.Helper()
	run, err := c.Run(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var r core.ContextReport
	if err := json.Unmarshal(run.Context, &r); err != nil {
		t.Fatalf("run's context %q: %v", run.Context, err)
	}
	return r
}
