package commandline_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bobbin/tests/apptest"
)

const (
	asJSON  = "application/json"
	asLines = "application/jsonl"
	mib     = 1 << 20
)

// exhaustion is an attack of end users with everything that their limits allow.
type exhaustion struct {
	*target
	users    []string // tokens
	statuses sync.Map // how often the attack got each status: *atomic.Int64
}

// End users whose requests take as much memory, disk and processor as their limits allow do not end
// the server, do not keep others from being answered, and store no more than they may.
func TestExhaustion(t *testing.T) {
	sizes, lasts := []int{2}, 5*time.Second
	if apptest.IsLong() {
		sizes, lasts = []int{2, 10}, time.Minute
	}
	for _, n := range sizes {
		t.Run(fmt.Sprint(n, " end users"), func(t *testing.T) {
			names := make([]string, n)
			for i := range names {
				names[i] = fmt.Sprint("user-", i)
			}
			v := newTarget(t, "default_llm: demo\nlimits: {user_bytes: 64MiB}\n", append(names, "ordinary"))
			defer v.table.Log(t)
			x := &exhaustion{target: v, users: v.users[:n]}
			x.run(t, v.users[n], lasts)
		})
	}
}

// run attacks for that long; meanwhile the ordinary user and another owner send messages.
func (x *exhaustion) run(t *testing.T, ordinary string, lasts time.Duration) {
	alone, end := context.WithTimeout(t.Context(), lasts/5)
	calm := x.others(t, alone, ordinary)
	end()
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	var all sync.WaitGroup
	attack := func(loops int, send func(user int)) {
		for i := range x.users {
			for range loops {
				all.Go(func() {
					for ctx.Err() == nil {
						send(i)
					}
				})
			}
		}
	}
	tiny := strings.Repeat(`{"role":"user","content":"x"},`, 19_899) + `{"role":"user","content":"y"}`
	line := fmt.Sprintf(`{"role":"user","content":%q}`, strings.Repeat("<a b] `c` ", 6_000)) + "\n"
	history := strings.Repeat(line, 300) // 18 MB
	attack(12, func(user int) {
		x.post(ctx, user, "/v1/chat/completions", asJSON, `{"model":"assistant","messages":[`+tiny+`]}`)
	})
	attack(4, func(user int) { x.post(ctx, user, "/v1/responses", asJSON, `{"model":"assistant","input":[`+tiny+`]}`) })
	attack(4, func(user int) { x.post(ctx, user, "/v1/conversations", asJSON, `{"items":[`+tiny+`]}`) })
	attack(2, func(user int) {
		x.post(ctx, user, "/api/v1"+x.messages(x.users[user])+"/import", asLines, history)
	})
	session := func(user int) string { return "/api/v1/sessions/" + x.session[x.users[user]] }
	attack(6, func(user int) { x.post(ctx, user, session(user)+"/fork", asJSON, "{}") })
	attack(4, func(user int) { x.request(ctx, user, "GET", session(user)+"/export?format=markdown", "", "") })
	before, cpu := x.diskBytes(t), x.cpu(t)
	took := x.others(t, ctx, ordinary)
	all.Wait()
	x.report(t, before, cpu, calm, took)
}

// others sends messages of the ordinary user and of another owner until ctx ends, and returns how long
// each took.
func (x *exhaustion) others(t *testing.T, ctx context.Context, ordinary string) (took []time.Duration) {
	for ctx.Err() == nil {
		for _, key := range []string{ordinary, bobKey} {
			begin := time.Now()
			status, answer := x.target.send(t, key, "POST", x.messages(key), asJSON, `{"content":"hello"}`)
			took = append(took, time.Since(begin))
			if status != http.StatusOK {
				t.Errorf("an ordinary message: got %d %.200s, want 200", status, answer)
			}
		}
	}
	return took
}

// report says what the attack came to.
func (x *exhaustion) report(t *testing.T, before int64, cpu time.Duration, calm, took []time.Duration) {
	p99 := func(took []time.Duration) time.Duration {
		slices.Sort(took)
		return took[min(len(took)-1, len(took)*99/100)].Round(time.Millisecond)
	}
	if got, most := p99(took), 5*time.Second; got > most {
		t.Errorf("99 of 100 ordinary messages took up to %v, want %v", got, most)
	}
	// A message takes an entry of the search index, events and the entries of indexes besides its row.
	grown, most := x.diskBytes(t)-before, int64(len(x.users))*3*64*mib+256*mib
	if grown > most {
		t.Errorf("the disk has %d MiB more, want at most %d", grown/mib, most/mib)
	}
	peak, _ := strconv.Atoi(x.status(t, "status", `VmHWM:\s+(\d+) kB`)[0])
	var statuses []string
	x.statuses.Range(func(status, n any) bool {
		statuses = append(statuses, fmt.Sprintf("%v: %d", status, n.(*atomic.Int64).Load()))
		return true
	})
	slices.Sort(statuses)
	x.table.AddRow(fmt.Sprintf("%d end users; %d ordinary messages, p99 %v (%v before); disk +%d MiB", len(x.users), len(took), p99(took), p99(calm), grown/mib), strings.Join(statuses, ", "), fmt.Sprintf("%d MiB", peak>>10), fmt.Sprintf("%.1f s", (x.cpu(t)-cpu).Seconds()))
}

// One user's exports at once take one place: no more than a core.
func TestExportsTakePlaces(t *testing.T) {
	exports, repeat := 6, 20
	if apptest.IsLong() {
		exports, repeat = 30, 900
	}
	v := newTarget(t, "default_llm: demo\n", []string{"eve"})
	defer v.table.Log(t)
	x := &exhaustion{target: v, users: v.users}
	eve := v.users[0]
	line := fmt.Sprintf(`{"role":"user","content":%q}`, strings.Repeat("<a b] `c` ", 6_000)) + "\n"
	v.want(t, "200", eve, "POST", v.messages(eve)+"/import", asLines, strings.Repeat(line, repeat))
	v.settle(t) // the import is indexed in the background
	before, began := v.cpu(t), time.Now()
	var all sync.WaitGroup
	for range exports {
		all.Go(func() {
			x.request(t.Context(), 0, "GET", "/api/v1/sessions/"+v.session[eve]+"/export?format=markdown", "", "")
		})
	}
	all.Wait()
	cpu, took := v.cpu(t)-before, time.Since(began)
	if cpu > took+time.Second {
		t.Errorf("%d exports took %v of a processor in %v, want that of one core", exports, cpu, took)
	}
	v.table.AddRow(fmt.Sprintf("%d exports as Markdown of one end user, in %v", exports, took.Round(time.Millisecond)), fmt.Sprint(x.count(200), " answered, ", x.count(429), " refused"), "-", fmt.Sprintf("%.1f s", cpu.Seconds()))
}

func (x *exhaustion) count(status int) int64 {
	n, ok := x.statuses.Load(status)
	if !ok {
		return 0
	}
	return n.(*atomic.Int64).Load()
}

func (x *exhaustion) post(ctx context.Context, user int, path, kind, body string) {
	x.request(ctx, user, "POST", path, kind, body)
}

// request sends a request of an attacking user and counts its status; 0 = the connection ended.
func (x *exhaustion) request(ctx context.Context, user int, method, path, kind, body string) {
	r, err := http.NewRequestWithContext(ctx, method, x.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return
	}
	r.Header = http.Header{"Authorization": {"Bearer " + x.users[user]}, "Content-Type": {kind}, "X-Forwarded-For": {fmt.Sprint("203.0.113.", 10+user)}}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return // the attack is over, or the server gone, which report finds
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	n, _ := x.statuses.LoadOrStore(response.StatusCode, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
}

// diskBytes returns the size of the data folder.
func (x *exhaustion) diskBytes(t *testing.T) (n int64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(x.dir, "bobbin-data", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("got %v (%v), want the data folder", files, err)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			n += info.Size()
		}
	}
	return n
}
