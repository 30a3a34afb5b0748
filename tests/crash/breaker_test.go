package crash_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
)

// kind is a kind of fault.
type kind string

const (
	kindKill     kind = "kill"
	kindStop     kind = "stop"
	kindFreeze   kind = "freeze"
	kindDatabase kind = "database"
	kindCut      kind = "cut"
	kindStall    kind = "stall"
	kindRoute    kind = "route"
)

// strike is one fault.
type strike struct {
	at    time.Duration // since the beginning
	kind  kind
	who   int           // replica, or pair of replicas
	long  time.Duration // until it is mended
	other bool          // the other form of the fault
}

// habit is how often and how long faults of a kind come.
type habit struct {
	kind  kind
	every time.Duration
	least time.Duration
	most  time.Duration
}

// leaseTime is how long the others must wait for the runs of a replica that is killed
// and stays away.
const leaseTime = 35 * time.Second

func habits() []habit {
	return []habit{
		{kindKill, 12 * time.Second, 0, 3 * time.Second},
		{kindStop, 25 * time.Second, 0, 2 * time.Second},
		{kindFreeze, 30 * time.Second, 500 * time.Millisecond, 10 * time.Second},
		{kindDatabase, 75 * time.Second, 0, 5 * time.Second},
		{kindCut, 20 * time.Second, 200 * time.Millisecond, 8 * time.Second},
		{kindStall, 25 * time.Second, 500 * time.Millisecond, 20 * time.Second},
		{kindRoute, 15 * time.Second, time.Second, 20 * time.Second},
	}
}

// plan returns the strikes of a run: each kind at least once, at random moments.
func plan(r *rand.Rand, long time.Duration) []strike {
	var all []strike
	for n, h := range habits() {
		at := time.Duration(float64(long) * (0.05 + 0.5*r.Float64()))
		at = min(at, time.Duration(r.ExpFloat64()*float64(h.every))+500*time.Millisecond)
		for first := true; at < long; first = false {
			s := strike{at: at, kind: h.kind, who: r.IntN(3), long: h.least + time.Duration(r.Float64()*float64(h.most-h.least)), other: r.IntN(2) == 0}
			if first {
				s.who = n % 3 // two first ones do not meet at one place
			}
			if rarely := r.IntN(8) == 0; h.kind == kindKill && (first || rarely) || h.kind == kindFreeze && rarely {
				s.long += leaseTime
			}
			all = append(all, s)
			at += time.Duration(r.ExpFloat64() * float64(h.every))
		}
	}
	slices.SortStableFunc(all, func(a, b strike) int { return cmp.Compare(a.at, b.at) })
	return all
}

// breaker carries strikes out.
type breaker struct {
	world *world
	mend  chan struct{} // closed when everything but what a kill left behind is to be mended
	wait  sync.WaitGroup

	mu     sync.Mutex
	busy   map[string]bool // what is broken; guarded by mu
	struck map[kind]int    // guarded by mu
	missed int             // strikes at what was broken already; guarded by mu
}

// run carries out the strikes and returns when the time is over and everything is mended
// but what a kill left behind.
func (b *breaker) run(ctx context.Context, strikes []strike, long time.Duration) {
	began := time.Now()
	for _, s := range strikes {
		if !process.Pause(ctx, time.Until(began.Add(s.at))) {
			break
		}
		b.wait.Go(func() { b.strike(ctx, s) })
	}
	process.Pause(ctx, time.Until(began.Add(long)))
	close(b.mend)
	b.wait.Wait()
}

// take takes a place for the fault: its own, or the next where nothing is broken. It
// returns an empty one if there is none.
func (b *breaker) take(s strike) (place string, do func(context.Context) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n := range replicaCount {
		next := s
		next.who = (s.who + n) % replicaCount
		if place, do = b.fault(next); !b.busy[place] {
			b.busy[place] = true
			b.struck[s.kind]++
			return place, do
		}
	}
	b.missed++
	return "", nil
}

// first reports whether no fault of the kind has struck yet.
func (b *breaker) first(k kind) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.struck[k] == 0
}

func (b *breaker) give(place string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.busy, place)
}

// strike carries out one fault and mends it.
func (b *breaker) strike(ctx context.Context, s strike) {
	place, do := b.take(s)
	for place == "" && b.first(s.kind) && process.PauseUnless(ctx, 100*time.Millisecond, b.mend) {
		place, do = b.take(s)
	}
	if place == "" {
		return
	}
	defer b.give(place)
	if err := do(ctx); err != nil && ctx.Err() == nil {
		b.world.violate("%s of %s: %v", s.kind, place, err)
	}
}

// fault returns what the fault breaks, and how.
func (b *breaker) fault(s strike) (place string, do func(context.Context) error) {
	w := b.world
	r := w.replicas[s.who]
	switch s.kind {
	case kindKill:
		return r.name, func(ctx context.Context) error {
			w.takeovers.killed(ctx, r.name, r.Kill)
			process.PauseUnless(ctx, s.long, b.mend)
			if s.long > leaseTime {
				return w.returns(ctx, r)
			}
			return r.start(ctx)
		}
	case kindStop:
		return r.name, func(ctx context.Context) error {
			err := r.Stop(patience)
			process.PauseUnless(ctx, s.long, b.mend)
			return errors.Join(err, r.start(ctx))
		}
	case kindFreeze:
		return r.name, func(ctx context.Context) error {
			err := r.Signal(syscall.SIGSTOP)
			process.PauseUnless(ctx, s.long, b.mend)
			return errors.Join(err, r.Signal(syscall.SIGCONT))
		}
	case kindDatabase:
		return "database", func(ctx context.Context) error {
			mode := dbtest.StopFast
			if s.other {
				mode = dbtest.StopImmediate
			}
			err := w.server.Stop(mode)
			process.PauseUnless(ctx, s.long, b.mend)
			return errors.Join(err, w.server.Start(ctx))
		}
	case kindCut:
		return "link of " + r.name, func(ctx context.Context) error {
			b.through(ctx, s.long, process.LinkCut, false, r.database)
			return nil
		}
	case kindStall:
		return "link of " + r.name, func(ctx context.Context) error {
			b.through(ctx, s.long, process.LinkStalled, s.other, r.database)
			return nil
		}
	default:
		return fmt.Sprintf("route %d", s.who), func(ctx context.Context) error {
			state := process.LinkCut
			if s.other {
				state = process.LinkStalled
			}
			b.through(ctx, s.long, state, false, w.routes[s.who]...)
			return nil
		}
	}
}

// through breaks links for a while. A stall ends by a break, or as if nothing had been.
func (b *breaker) through(ctx context.Context, d time.Duration, state process.LinkState, breaks bool, links ...*process.Link) {
	for _, l := range links {
		l.Set(state)
	}
	process.PauseUnless(ctx, d, b.mend)
	for _, l := range links {
		if breaks {
			l.Set(process.LinkCut)
		}
		l.Set(process.LinkOpen)
	}
}

// counts returns how often each kind of fault struck, in words.
func (b *breaker) counts() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := ""
	for _, k := range slices.Sorted(maps.Keys(b.struck)) {
		text += fmt.Sprintf("%s %d, ", k, b.struck[k])
	}
	return text + fmt.Sprintf("missed %d", b.missed)
}

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
