package commandline_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bobbin/tests/apptest"
	"bobbin/tests/jwttest"
	"bobbin/tests/must"
	"bobbin/tests/process"
)

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
	if err != nil {
		t.Errorf("%s %s: %v", method, path, err)
	}
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
