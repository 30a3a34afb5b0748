package commandline_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/jwttest"
	"bobbin/tests/must"
	"bobbin/tests/process"
)

const (
	asJSON  = "application/json"
	asLines = "application/jsonl"
	mib     = 1 << 20

	userLimit = 96 // MiB that one end user may store
)

// exhaustion is an attack of end users with everything that their limits allow.
type exhaustion struct {
	*target
	users      []string // tokens
	summarized []string // a session of each with two versions of its summary

	mu       sync.Mutex
	statuses map[string]map[int]int // how often each kind of attack got each status; guarded by mu
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
			v := newTarget(t, fmt.Sprintf("default_llm: demo\nlimits: {user_bytes: %dMiB}\n", userLimit), append(names, "ordinary"))
			defer v.table.Log(t)
			x := &exhaustion{target: v, users: v.users[:n]}
			x.run(t, v.users[n], lasts)
		})
	}
}

// run attacks for that long; meanwhile the ordinary user and another owner send messages. Each attack is
// made once before, while there is room.
func (x *exhaustion) run(t *testing.T, ordinary string, lasts time.Duration) {
	alone, end := context.WithTimeout(t.Context(), lasts/5)
	calm := x.others(t, alone, ordinary)
	end()
	for user := range x.users {
		path := x.newSession(t.Context(), user)
		x.request(t.Context(), "", user, "POST", path+"/messages/import", asLines, strings.Repeat(`{"role":"user","content":"question"}`+"\n"+`{"role":"assistant","content":"answer"}`+"\n", 10))
		x.request(t.Context(), "", user, "POST", path+"/summarize", asJSON, "{}")
		x.request(t.Context(), "", user, "PUT", path+"/summary", asJSON, `{"version":1,"content":"`+strings.Repeat("word ", 600)+`"}`)
		x.summarized = append(x.summarized, path)
	}
	before, cpu, attacks := x.diskBytes(t), x.cpu(t), x.attacks()
	var all sync.WaitGroup
	for user := range x.users {
		all.Go(func() {
			for _, a := range attacks {
				a.send(t.Context(), user)
			}
		})
	}
	all.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	for _, a := range attacks {
		for user := range x.users {
			for range a.loops {
				all.Go(func() {
					for ctx.Err() == nil {
						a.send(ctx, user)
					}
				})
			}
		}
	}
	took := x.others(t, ctx, ordinary)
	all.Wait()
	x.report(t, before, cpu, calm, took)
	for kind, got := range x.statuses {
		compare.True(t, got[200]+got[201] != 0, "%s: got the statuses %v, want some that succeed", kind, got)
	}
}

// attack is one kind of request, sent again and again by so many loops of each user.
type attack struct {
	loops int
	send  func(ctx context.Context, user int)
}

func (x *exhaustion) attacks() []attack {
	tiny := strings.Repeat(`{"role":"user","content":"x"},`, 19_899) + `{"role":"user","content":"y"}`
	line := fmt.Sprintf(`{"role":"user","content":%q}`, strings.Repeat("<a b] `c` ", 6_000)) + "\n"
	history := strings.Repeat(line, 100) // 6 MB
	session := func(user int) string { return "/api/v1/sessions/" + x.session[x.users[user]] }
	return []attack{
		{12, func(ctx context.Context, user int) {
			x.request(ctx, "completion", user, "POST", "/v1/chat/completions", asJSON, `{"model":"assistant","messages":[`+tiny+`]}`)
		}},
		{4, func(ctx context.Context, user int) {
			x.request(ctx, "response", user, "POST", "/v1/responses", asJSON, `{"model":"assistant","input":[`+tiny+`]}`)
		}},
		{4, func(ctx context.Context, user int) {
			x.request(ctx, "conversation", user, "POST", "/v1/conversations", asJSON, `{"items":[`+tiny+`]}`)
		}},
		{2, func(ctx context.Context, user int) {
			x.request(ctx, "import", user, "POST", session(user)+"/messages/import", asLines, history)
		}},
		{6, func(ctx context.Context, user int) {
			x.request(ctx, "fork", user, "POST", session(user)+"/fork", asJSON, "{}")
		}},
		{2, func(ctx context.Context, user int) { // an archived session goes on in a fork of it
			h := x.request(ctx, "archived", user, "POST", "/v1/chat/completions", asJSON, `{"model":"assistant","messages":[`+tiny+`]}`, "X-Session-Id", fmt.Sprint("chain-", user))
			if id := h.Get("X-Session-Id"); id != "" {
				x.request(ctx, "", user, "DELETE", "/api/v1/sessions/"+id, "", "")
			}
		}},
		{4, func(ctx context.Context, user int) {
			x.request(ctx, "patch", user, "PATCH", x.newSession(ctx, user), asJSON, `{"instructions":"`+strings.Repeat("i", 16_000)+`","metadata":{"a":"`+strings.Repeat("m", 16_000)+`"}}`, "Idempotency-Key", core.NewID[string]())
		}},
		{4, func(ctx context.Context, user int) {
			x.request(ctx, "options", user, "POST", x.newSession(ctx, user)+"/messages", asJSON, `{"content":"x","options":{"instructions":"`+strings.Repeat("o", 60_000)+`"}}`)
		}},
		{2, func(ctx context.Context, user int) { // the second version is large
			x.request(ctx, "restored summary", user, "POST", x.summarized[user]+"/summaries/2/restore", asJSON, "{}")
		}},
		{4, func(ctx context.Context, user int) {
			x.request(ctx, "instruction", user, "POST", x.newSession(ctx, user)+"/standing-instructions", asJSON, `{"text":"`+strings.Repeat("s", 500)+`"}`)
		}},
		{6, func(ctx context.Context, user int) {
			x.request(ctx, "export", user, "GET", session(user)+"/export?format=markdown", "", "")
		}},
	}
}

// others sends messages of the ordinary user and of another owner until ctx ends, and returns how long
// each took.
func (x *exhaustion) others(t *testing.T, ctx context.Context, ordinary string) (took []time.Duration) {
	for ctx.Err() == nil {
		for _, key := range []string{ordinary, bobKey} {
			begin := time.Now()
			status, answer := x.target.send(t, key, "POST", x.messages(key), asJSON, `{"content":"hello"}`)
			took = append(took, time.Since(begin))
			compare.Equal(t, fmt.Sprintf("an ordinary message: %.200s", answer), http.StatusOK, status)
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
	// OPERATION.md: a message takes an entry of the search index, events and the entries of indexes besides its row.
	grown, most := x.diskBytes(t)-before, int64(len(x.users))*3*userLimit*mib+256*mib
	compare.True(t, grown <= most, "the disk has %d MiB more, want at most %d", grown/mib, most/mib)
	peak, _ := strconv.Atoi(x.status(t, "status", `VmHWM:\s+(\d+) kB`)[0])
	x.table.AddRow(fmt.Sprintf("%d end users; %d ordinary messages, p99 %v (%v before); disk +%d MiB", len(x.users), len(took), p99(took), p99(calm), grown/mib), fmt.Sprint(x.statuses), fmt.Sprintf("%d MiB", peak>>10), fmt.Sprintf("%.1f s", (x.cpu(t)-cpu).Seconds()))
}

// One user's exports at once take one place: a core, and what the garbage collector does on cores that are idle.
func TestExportsTakePlaces(t *testing.T) {
	exports, repeat := 6, 20
	if apptest.IsLong() {
		exports, repeat = 30, 300
	}
	v := newTarget(t, "default_llm: demo\n", []string{"eve"})
	defer v.table.Log(t)
	x := &exhaustion{target: v, users: v.users}
	eve := v.users[0]
	line := fmt.Sprintf(`{"role":"user","content":%q}`, strings.Repeat("<a b] `c` ", 6_000)) + "\n"
	if status, answer := v.send(t, eve, "POST", v.messages(eve)+"/import", asLines, strings.Repeat(line, repeat)); status != http.StatusOK {
		t.Fatalf("import: got %d %.200s", status, answer)
	}
	v.settle(t) // the import is indexed in the background
	before, began := v.cpu(t), time.Now()
	var all sync.WaitGroup
	for range exports {
		all.Go(func() {
			x.request(t.Context(), "export", 0, "GET", "/api/v1/sessions/"+v.session[eve]+"/export?format=markdown", "", "")
		})
	}
	all.Wait()
	cpu, took := v.cpu(t)-before, time.Since(began)
	got := x.statuses["export"]
	if got[200] < 2 || got[200]+got[429] != exports {
		t.Errorf("got the statuses %v for %d exports, want several that are answered, and the others refused", got, exports)
	}
	if cpu > took && (apptest.IsLong() || cpu > took+time.Second) {
		t.Errorf("%d exports took %v of a processor in %v, want that of one core", exports, cpu, took)
	}
	v.table.AddRow(fmt.Sprintf("%d exports as Markdown of one end user, in %v", exports, took.Round(time.Millisecond)), fmt.Sprint(got), "-", fmt.Sprintf("%.1f s", cpu.Seconds()))
}

// request sends a request of an attacking user, counts its status, and returns the header of the answer.
func (x *exhaustion) request(ctx context.Context, attack string, user int, method, path, kind, body string, headers ...string) http.Header {
	r, err := http.NewRequestWithContext(ctx, method, x.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return nil
	}
	r.Header = http.Header{"Authorization": {"Bearer " + x.users[user]}, "Content-Type": {kind}, "X-Forwarded-For": {fmt.Sprint("203.0.113.", 10+user)}}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil // the attack is over, or the server gone, which report finds
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	if attack == "" { // no attack, but what one needs
		return response.Header
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.statuses == nil {
		x.statuses = map[string]map[int]int{}
	}
	if x.statuses[attack] == nil {
		x.statuses[attack] = map[int]int{}
	}
	x.statuses[attack][response.StatusCode]++
	return response.Header
}

// newSession creates a session of the user and returns its path; without room that of the first one.
func (x *exhaustion) newSession(ctx context.Context, user int) string {
	if h := x.request(ctx, "", user, "POST", "/api/v1/sessions", asJSON, "{}"); h.Get("Location") != "" {
		return h.Get("Location")
	}
	return "/api/v1/sessions/" + x.session[x.users[user]]
}

// diskBytes returns the size of the data folder.
func (x *exhaustion) diskBytes(t *testing.T) (n int64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(x.dir, "bobbin-data", "*"))
	must.True(t, err == nil && len(files) != 0, "got %v (%v), want the data folder", files, err)
	for _, f := range files {
		if info, err := os.Stat(f); err == nil {
			n += info.Size()
		}
	}
	return n
}

// The keys of the server that is attacked.
const (
	aliceKey = "alice-5f1c0a9e7b3d2846f0a1b2c3"
	bobKey   = "bob-8e2d4c6a1f3b5079e0d1c2b3a4"
)

// target is the server that is attacked, in a memory limit of 1 GiB.
type target struct {
	shell
	url     string
	pid     int
	users   []string          // tokens of end users of alice
	session map[string]string // by key
	table   *apptest.Table
}

// newTarget returns a target with the settings, and with a session of each of the end users.
func newTarget(t *testing.T, settings string, users []string) *target {
	t.Helper()
	signer := jwttest.NewSigner(t, "k", "ES256")
	v := &target{session: map[string]string{}, table: apptest.NewTable("attacks on a server of 1 GiB")}
	v.shell = newShell(t, "BOBBIN_CONFIG=bobbin.yaml", "GOMEMLIMIT=921MiB")
	v.write(t, "bobbin.yaml", settings+fmt.Sprintf(`titles: false
server: {trusted_proxies: [127.0.0.1/32]}
auth:
  required: true
  keys: ["alice:%s", "bob:%s"]
  jwt: {jwks_url: %q, issuer: %q, audience: %q, owner: alice}
`, aliceKey, bobKey, jwttest.Serve(t, signer).URL, jwttest.Issuer, jwttest.Audience))
	said := v.serve(t, "--addr", "127.0.0.1:0")
	v.url, v.pid = said.URL, said.PID
	must.Do(t, unix.Prlimit(v.pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: 1 << 30, Max: 1 << 30}, nil))
	for _, user := range users {
		v.users = append(v.users, signer.User(t, user))
	}
	for _, key := range append([]string{aliceKey, bobKey}, v.users...) {
		_, answer := v.send(t, key, "POST", "/sessions", "application/json", "{}")
		v.session[key] = regexp.MustCompile(`"id":"([0-9a-f-]{36})"`).FindStringSubmatch(answer)[1]
	}
	return v
}

// messages returns the path of the messages in the session of who has the key.
func (v *target) messages(key string) string { return "/sessions/" + v.session[key] + "/messages" }

// send sends a request to the API, as a proxy for one address does, and returns the answer.
func (v *target) send(t *testing.T, key, method, path, kind, body string) (int, string) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), method, v.url+"/api/v1"+path, strings.NewReader(body)))(t)
	r.Header = http.Header{"Authorization": {"Bearer " + key}, "Content-Type": {kind}, "X-Forwarded-For": {"203.0.113.7"}}
	patient := http.Client{Transport: process.PatientTransport{Transport: http.DefaultTransport.(*http.Transport)}}
	response, err := patient.Do(r)
	if err != nil {
		t.Errorf("%s %s: %v", method, path, err)
		return 0, err.Error()
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	compare.True(t, err == nil, "%s %s: %v", method, path, err)
	return response.StatusCode, string(answer)
}

// status returns what the pattern captures in a file about the server's process.
func (v *target) status(t *testing.T, file, pattern string) []string {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", v.pid, file))
	found := regexp.MustCompile(pattern).FindStringSubmatch(string(raw))
	if err != nil || found == nil {
		t.Fatalf("the server is gone (%v):\n%s", err, v.read(t, "serve.log"))
	}
	return found[1:]
}

// settle waits until the server has nothing to do.
func (v *target) settle(t *testing.T) {
	t.Helper()
	const look, idle = time.Second, 50 * time.Millisecond // what it does each second anyway takes less
	limit := time.After(5 * patience)
	for before := v.cpu(t); ; {
		select {
		case <-time.After(look):
		case <-limit:
			t.Fatal("the server does not come to rest")
		}
		now := v.cpu(t)
		if now-before < idle {
			return
		}
		before = now
	}
}

// cpu returns the processor time that the server has taken.
func (v *target) cpu(t *testing.T) (sum time.Duration) {
	t.Helper()
	for _, ticks := range v.status(t, "stat", `\) \S(?: \S+){10} (\d+) (\d+) `) {
		n, _ := strconv.Atoi(ticks)
		sum += time.Duration(n) * 10 * time.Millisecond // Linux has 100 a second
	}
	return sum
}
