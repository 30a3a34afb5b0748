package crash_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/records"
)

// replicaCount is how many replicas there are.
const replicaCount = 3

// world is everything that a run of the tests has.
type world struct {
	settings

	t         *testing.T
	began     time.Time
	server    *dbtest.Server
	database  *gorm.DB // around all links; nil = it is opened when nothing is killed any more
	model     *model
	replicas  []*replica
	routes    [][]*process.Link // between replicas 0 and 1, 0 and 2, 1 and 2
	road      *road
	talk      *talk
	breaker   *breaker
	takeovers *takeovers
	ids       []core.SessionID
	watchers  []*watcher
	restarts  []time.Duration // of what was killed by killAgain

	mu         sync.Mutex
	violations []string // guarded by mu
	internal   int      // errors in the logs
}

// dbname is the database of the replicas.
const dbname = "bobbin"

// newWorld builds everything, the replicas as build does, and starts them.
func newWorld(t *testing.T, s settings, build func(w *world)) *world {
	t.Helper()
	w := &world{settings: s, t: t, began: time.Now(), model: must.Get(newModel())(t)}
	t.Cleanup(w.model.Close)
	build(w)
	w.road = &road{replicas: w.replicas}
	w.talk = &talk{world: w, closed: make(chan struct{}), sent: map[string]*records.Sent{}, refused: map[string]int{}}
	w.breaker = &breaker{world: w, mend: make(chan struct{}), busy: map[string]bool{}, struck: map[kind]int{}}
	w.takeovers = &takeovers{db: w.database, orphans: map[core.RunID]orphan{}}
	w.startAll()
	return w
}

// play lets people talk while breakThings is at work, and checks everything afterwards.
func (w *world) play(breakThings func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var helpers, watching sync.WaitGroup
	defer helpers.Wait()
	defer cancel()
	helpers.Go(func() { w.progress(ctx) })
	helpers.Go(func() { w.takeovers.watch(ctx) })
	w.begin(ctx)
	looking, leave := context.WithCancel(ctx)
	defer watching.Wait()
	defer leave()
	w.follow(looking, &watching)
	breakThings(ctx)
	w.settle()
	found := w.verify()
	leave()
	watching.Wait()
	w.verifyFeeds(found)
	w.readLogs()
	w.report(found)
}

// openDatabase makes the replicas' database and opens it, around all links.
func (w *world) openDatabase() {
	conn, err := pgx.Connect(w.t.Context(), w.server.URL)
	if err == nil {
		_, err = conn.Exec(w.t.Context(), "CREATE DATABASE "+dbname)
	}
	must.Do(w.t, err)
	_ = conn.Close(w.t.Context()) // it did its work
	url := strings.Replace(w.server.URL, "/postgres?", "/"+dbname+"?", 1)
	d := must.Get(db.Open(w.t.Context(), url, slog.New(slog.DiscardHandler)))(w.t)
	w.t.Cleanup(func() { _ = d.Close() }) // the server is about to be removed
	w.database = d.Gorm
}

// buildReplicas makes the server of the database, the replicas and the links between them and to the database. Each
// has an address of its own for the others: NATS servers tell each other of routes, by
// the address that they see, and that is a link's and leads nowhere.
func (w *world) buildReplicas() {
	w.server = dbtest.NewServer(w.t)
	w.openDatabase()
	address := strings.Split(strings.TrimPrefix(w.server.URL, "postgres://postgres@"), "/")[0]
	var clusters []string
	for n := range replicaCount {
		clusters = append(clusters, process.FreeAddressOf(w.t, fmt.Sprintf("127.0.1.%d", n+1)))
	}
	w.routes = make([][]*process.Link, replicaCount)
	pair := map[[2]int]int{{0, 1}: 0, {0, 2}: 1, {1, 2}: 2}
	for n := range replicaCount {
		var peers []string
		for other := range replicaCount {
			if other == n {
				continue
			}
			l := process.NewLink(w.t, clusters[other])
			p := pair[[2]int{min(n, other), max(n, other)}]
			w.routes[p] = append(w.routes[p], l)
			peers = append(peers, fmt.Sprintf("%q", l.Addr()))
		}
		link, name := process.NewLink(w.t, address), fmt.Sprintf("r%d", n+1)
		r := newReplica(w.t, name, den.Temp(w.t), w.model.URL, fmt.Sprintf(`
database: {url: "postgres://postgres@%s/%s?sslmode=disable"}
replica: {name: %s}
nats: {cluster_addr: %q, peers: [%s], secret: hush-hush-hush-hush-hush-hush}
`, link.Addr(), dbname, name, clusters[n], strings.Join(peers, ", ")))
		r.database = link
		w.replicas = append(w.replicas, r)
	}
}

// startAll starts all replicas that are down, and returns when they are up.
func (w *world) startAll() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	var wait sync.WaitGroup
	for _, r := range w.replicas {
		wait.Go(func() {
			if err := r.start(ctx); err != nil {
				w.violate("%v", err)
			}
		})
	}
	wait.Wait()
}

// returns starts a replica again that stayed away, now or, when the faults are over, as
// soon as the others have taken its runs over.
func (w *world) returns(ctx context.Context, r *replica) error {
	select {
	case <-w.breaker.mend:
		return nil // settle starts it
	default:
		return r.start(ctx)
	}
}

// violate notes that something is not as promised.
func (w *world) violate(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.mu.Lock()
	w.violations = append(w.violations, text)
	n := len(w.violations)
	w.mu.Unlock()
	if n <= mostShown {
		w.t.Errorf("%s %s", w.clock(), text)
	}
}

// mostShown bounds the violations that are printed: more would bury the first.
const mostShown = 40

// clock is how long it has been, for what is printed.
func (w *world) clock() string { return time.Since(w.began).Round(time.Second).String() }

// begin opens the sessions, and lets people talk and watch.
func (w *world) begin(ctx context.Context) {
	w.ids = make([]core.SessionID, w.sessions)
	var wait sync.WaitGroup
	places := make(chan struct{}, 8)
	for n := range w.ids {
		wait.Go(func() {
			places <- struct{}{}
			w.ids[n] = w.talk.open(ctx, n)
			<-places
		})
	}
	wait.Wait()
	for n, id := range w.ids {
		w.talk.speakers(ctx, n, id)
	}
}

// follow lets two watch each session. The wait group is done when they have ended, with ctx.
func (w *world) follow(ctx context.Context, wait *sync.WaitGroup) {
	for n, id := range w.ids {
		for i, who := range []string{"one", "another"} {
			name := fmt.Sprintf("session %d (%s), %s", n, id, who)
			f := &watcher{name: name, session: id, slow: (n+i)%5 == 0, traveler: traveler{road: w.road, share: 0.8, life: 40 * time.Second}}
			f.violated = func(format string, args ...any) { w.violate(name+": "+format, args...) }
			f.refused = func(err error) { w.talk.refuse(name, err) }
			f.asked = func(a core.Approval) { wait.Go(func() { w.talk.decide(ctx, a) }) }
			f.feed = records.NewFeed(f.violated)
			w.watchers = append(w.watchers, f)
			wait.Go(func() { f.follow(ctx, f.traveler.client(w.t)) })
		}
	}
}

// progress prints how far everything is, until ctx ends.
func (w *world) progress(ctx context.Context) {
	every := min(30*time.Second, max(5*time.Second, w.time/10))
	for process.Pause(ctx, every) {
		w.talk.mu.Lock()
		sent, tries := len(w.talk.sent), w.talk.tries
		w.talk.mu.Unlock()
		w.mu.Lock()
		violations := len(w.violations)
		w.mu.Unlock()
		w.t.Logf("%s: %d messages sent in %d tries; faults: %s; clients cut %d; model %s; runs standing still %d; violations %d",
			w.clock(), sent, tries, w.breaker.counts(), w.road.broken.Load(), w.model.counts(), w.takeovers.left(), violations)
	}
}

// road leads clients to the replicas as a load balancer does that knows nothing: to any
// that is up. Connections on it break at random. Safe for concurrent use.
type road struct {
	replicas []*replica
	calm     atomic.Bool // nothing breaks any more
	broken   atomic.Int64
}

// traveler is how the connections of one client live.
type traveler struct {
	road  *road
	share float64       // of connections that break by themselves
	life  time.Duration // of these, at most
}

// client returns a client of the API on the road, whose every request has a connection of its own.
func (v traveler) client(t *testing.T) *client.Client {
	t.Helper()
	return must.Get(client.New(client.Options{URL: "http://localhost", HTTP: &http.Client{Transport: &http.Transport{DialContext: v.dial, DisableKeepAlives: true}}}))(t)
}

// dial connects to a replica that is up, as soon as there is one.
func (v traveler) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	for {
		for _, n := range shared.Perm(len(v.road.replicas)) {
			r := v.road.replicas[n]
			addr := r.Door.Addr()
			if addr == "" {
				continue
			}
			if conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr); err == nil {
				return v.mortal(conn), nil
			}
		}
		if !process.Pause(ctx, 20*time.Millisecond) {
			return nil, context.Cause(ctx)
		}
	}
}

// mortal lets some connections break.
func (v traveler) mortal(conn net.Conn) net.Conn {
	if v.road.calm.Load() || shared.Float64() >= v.share {
		return conn
	}
	m := &mortalConn{Conn: conn}
	m.end = time.AfterFunc(randomDelay(v.life), func() {
		if v.road.calm.Load() {
			return
		}
		v.road.broken.Add(1)
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	})
	return m
}

// mortalConn is a connection that breaks after a while.
type mortalConn struct {
	net.Conn

	end  *time.Timer
	once sync.Once
}

func (m *mortalConn) Close() error {
	m.once.Do(func() { m.end.Stop() })
	return m.Conn.Close()
}
