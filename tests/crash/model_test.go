package crash_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
)

// model is a provider that fails now and then, until it is calm.
type model struct {
	*provider.Server

	calm   chan struct{}       // closed: nothing fails any more
	points chan provider.Point // that a request has come to, for who waits for one

	mu     sync.Mutex
	faults map[string]int // guarded by mu
	first  []modelFault   // before an answer, that have not come yet; guarded by mu
	midway []modelFault   // in the middle of one, that have not come yet; guarded by mu
}

// modelFault is how a model fails.
type modelFault string

const (
	modelRateLimit modelFault = "429"
	modelError     modelFault = "500"
	modelHangs     modelFault = "hangs"
	modelBreaksOff modelFault = "broke off"
	modelHangsOn   modelFault = "hung in the middle"
	modelSlow      modelFault = "slow"
	modelFine      modelFault = ""
)

func newModel() (*model, error) {
	m := &model{
		calm: make(chan struct{}), points: make(chan provider.Point), faults: map[string]int{},
		first: []modelFault{modelRateLimit, modelError, modelHangs}, midway: []modelFault{modelBreaksOff, modelHangsOn, modelSlow},
	}
	var err error
	m.Server, err = provider.New(provider.Options{Window: modelWindow, Overcount: 1.15, Fault: m.fault, Hold: m.hold, At: m.at, Pieces: 4})
	return m, err
}

// at hands the point on.
func (m *model) at(p provider.Point, _ provider.Asked) {
	select {
	case m.points <- p:
	default:
	}
}

// await waits until a request comes to the point, or for workTime.
func (m *model) await(ctx context.Context, want provider.Point) {
	ctx, cancel := context.WithTimeout(ctx, workTime)
	defer cancel()
	for {
		select {
		case p := <-m.points:
			if p == want {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// isCalm reports whether nothing fails any more.
func (m *model) isCalm() bool {
	select {
	case <-m.calm:
		return true
	default:
		return false
	}
}

func (m *model) count(f modelFault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults[string(f)]++
}

// counts returns how often it failed, in words.
func (m *model) counts() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprint(m.faults)
}

// wait takes some time, or until it is calm.
func (m *model) wait(d time.Duration) { process.PauseUnless(context.Background(), d, m.calm) }

// odds is a fault that comes by chance below a share of the draws.
type odds struct {
	fault modelFault
	below float64
}

// next returns one of the faults that have not come yet, soon, so that a short run has each; else one by chance.
func (m *model) next(list *[]modelFault, chances ...odds) modelFault {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(*list) > 0 && shared.IntN(8) == 0 {
		f := (*list)[0]
		*list = (*list)[1:]
		return f
	}
	x := shared.Float64()
	for _, o := range chances {
		if x < o.below {
			return o.fault
		}
	}
	return modelFine
}

// fault answers some requests by an error, or not at all.
func (m *model) fault(w http.ResponseWriter, _ provider.Asked) bool {
	if m.isCalm() {
		return false
	}
	f := m.next(&m.first, odds{modelRateLimit, 0.03}, odds{modelError, 0.06}, odds{modelHangs, 0.07})
	status := http.StatusInternalServerError
	switch f {
	case modelFine:
		return false
	case modelRateLimit:
		status = http.StatusTooManyRequests
	case modelHangs:
		m.count(f)
		m.wait(2*time.Second + randomDelay(10*time.Second))
		panic(http.ErrAbortHandler)
	}
	m.count(f)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"error":{"message":"not now","type":"server_error"}}`) // who is gone is gone
	return true
}

// hold is asked before each piece of an answer: it takes some time, and some answers
// break off or hang.
func (m *model) hold(string) {
	if m.isCalm() {
		return
	}
	f := m.next(&m.midway, odds{modelBreaksOff, 0.01}, odds{modelHangsOn, 0.015}, odds{modelSlow, 0.06})
	if f != modelFine {
		m.count(f)
	}
	switch f {
	case modelBreaksOff:
		panic(http.ErrAbortHandler)
	case modelHangsOn:
		m.wait(2*time.Second + randomDelay(8*time.Second))
		panic(http.ErrAbortHandler)
	case modelSlow:
		m.wait(randomDelay(3 * time.Second))
	default:
		m.wait(randomDelay(100 * time.Millisecond))
	}
}

// stopTime is how long a replica that is stopped lets runs at work go on.
const stopTime = 2 * time.Second

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
	database *process.Link
}

// newReplica returns a replica with its settings, in YAML, besides those of the model. It is not started.
func newReplica(t *testing.T, name, dir, model, settings string) *replica {
	t.Helper()
	r := &replica{name: name, Server: den.NewServer(t, den.Program(t, process.Raced), dir, fmt.Sprintf(`
default_llm: small
models:
  - {name: small, provider: openai, base_url: %q, api_key_env: PROVIDER_KEY, context_window: %d, max_output_tokens: %d}
limits: {shutdown_grace: %s, open_streams: 10000, open_streams_per_owner: 10000}
`, model, modelWindow, modelOutput, stopTime)+settings)}
	must.Do(t, os.Mkdir(filepath.Join(r.Dir, "agents"), 0o700))
	must.Do(t, os.WriteFile(filepath.Join(r.Dir, "agents", "careful.yaml"), []byte(careful), 0o600))
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
