package fault_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bobbin/tests/must"
	"bobbin/tests/process"
)

// The model of the tests: a window so small that summaries are made often.
const (
	modelWindow = 6_000
	modelOutput = 1_000
)

// grace is how long a replica that is stopped lets runs at work go on.
const grace = 2 * time.Second

// careful is an agent whose tool asks before each call.
const careful = `name: careful
system_prompt: You ask before you act.
tools: [calculator]
tool_settings:
  calculator: {approval: always}
`

// replica is a Bobbin in a process of its own.
type replica struct {
	*process.Server
	name     string
	database *link
}

// newReplica returns a replica with its configuration. It is not started.
func newReplica(t *testing.T, name, model string, database *link, dbname, cluster string, peers []string) *replica {
	t.Helper()
	r := &replica{name: name, database: database, Server: den.NewServer(t, den.Program(t, process.Raced), den.Temp(t), fmt.Sprintf(`
default_llm: small
models:
  - {name: small, provider: openai, base_url: %q, api_key_env: PROVIDER_KEY, context_window: %d, max_output_tokens: %d}
database: {url: "postgres://postgres@%s/%s?sslmode=disable"}
replica: {name: %s}
nats: {cluster_addr: %q, peers: [%s], secret: hush-hush-hush-hush-hush-hush}
limits: {shutdown_grace: %s, open_streams: 10000, open_streams_per_owner: 10000}
`, model, modelWindow, modelOutput, database.addr(), dbname, name, cluster, strings.Join(peers, ", "), grace))}
	err := os.Mkdir(filepath.Join(r.Dir, "agents"), 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(r.Dir, "agents", "careful.yaml"), []byte(careful), 0o600)
	}
	must.Do(t, err)
	return r
}

// start starts the process and waits until it can be reached. It may give up, as it does without a
// database: whoever keeps it running tries again.
func (r *replica) start(ctx context.Context) error {
	for {
		err := r.Start(ctx)
		if !errors.Is(err, process.ErrEnded) || ctx.Err() != nil || !process.Pause(ctx, 300*time.Millisecond) {
			return err
		}
	}
}

// readLog returns what must never be in the log, and counts the errors in it.
func (r *replica) readLog(keep string) (bad []string, errors int) {
	log, bad := r.ReadLog("DATA RACE", "panic", "fatal error:", "code=internal")
	if keep != "" {
		_ = os.WriteFile(filepath.Join(keep, r.name+".log"), log, 0o600) // a convenience
	}
	return bad, bytes.Count(log, []byte("level=ERROR"))
}
