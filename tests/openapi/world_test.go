package openapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/document"
	"bobbin/tests/jwttest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
	"bobbin/tests/slackfake/fakeslack"
)

func TestMain(m *testing.M) { apptest.Main(m) }

// world is a Bobbin with two owners, served on a loopback port.
type world struct {
	t   testing.TB
	doc *document.Document
	url string
	dir string // its data folder
	log *apptest.Tail

	checked *http.Client // holds all that is sent and answered against the document

	signer    *jwttest.Signer // of the tokens of ada's end users
	slackTeam string          // the workspace of Slack in which the app is installed
	replayed  bool            // the last answer was stored with an idempotency key
}

// startSlack starts a Slack in which the app is installed.
func (w *world) startSlack(cfg *config.Config) {
	w.t.Helper()
	s := must.Get(fakeslack.New(fakeslack.Options{}))(w.t)
	w.t.Cleanup(func() { _ = s.Close() })
	workspace := s.AddWorkspace("acme")
	w.slackTeam = workspace.ID
	cfg.Slack.Owner, cfg.Slack.BotToken, cfg.Slack.SigningSecret, cfg.Slack.APIURL = "ada", config.NewSecret(workspace.Install()), config.NewSecret("signing-secret"), s.APIURL()
}

// owner is who has a key, and what is theirs.
type owner struct {
	name   string
	key    string
	marker string // is in everything that is the owner's
	ids    *pool
}

// newWorld serves a Bobbin on the database at url.
func newWorld(t testing.TB, url string) *world {
	t.Helper()
	w := &world{t: t, doc: must.Get(document.Load())(t), signer: jwttest.NewSigner(t, "k1", "EdDSA")}
	h := apptest.New(t, url, apptest.WithModel("house", 32_000, 1000, apptest.NewProvider(t, provider.Options{})), w.startSlack, func(c *config.Config) {
		c.Log.Level = "debug" // so that all of it is kept
		c.Auth.Keys = []config.APIKey{{Name: "ada", Secret: config.NewSecret("ada-secret-ada-secret")}, {Name: "bob", Secret: config.NewSecret("bob-secret-bob-secret")}}
		c.Auth.JWT.JWKSURL, c.Auth.JWT.Issuer, c.Auth.JWT.Audience, c.Auth.JWT.Owner = jwttest.Serve(t, w.signer).URL, jwttest.Issuer, jwttest.Audience, "ada"
		c.Auth.JWT.Scopes = []string{"read", "write", "delete", "export"}
		c.Metrics.Keys = []string{"bob"}                                                       // who is to see nothing of ada in them
		c.Limits.RequestsPerSecond, c.Limits.UserRequests, c.Limits.GuessesPerMinute = 0, 0, 0 // there are many
		c.Limits.WaitTime, c.Limits.ShutdownGrace = 5*time.Second, time.Second
	})
	w.url, w.dir, w.log, w.checked = h.URL, h.Config.DataDir, h.Log, h.HTTP
	return w
}

// do sends a request of the owner and returns status and body; both are held against
// the document.
func (w *world) do(o *owner, method, path string, body any, headers ...string) (int, []byte) {
	w.t.Helper()
	var sent io.Reader
	media := "application/json"
	switch given := body.(type) {
	case nil:
	case form:
		sent, media = bytes.NewReader(given.body), given.media
	case string:
		sent = strings.NewReader(given)
	default:
		data := must.Get(json.Marshal(given))(w.t)
		sent = bytes.NewReader(data)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	r := must.Get(http.NewRequestWithContext(ctx, method, w.url+path, sent))(w.t)
	if sent != nil {
		r.Header.Set("Content-Type", media)
	}
	r.Header.Set("Authorization", "Bearer "+o.key)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	answer := must.Get(w.checked.Do(r))(w.t)
	defer answer.Body.Close()
	w.replayed = answer.Header.Get("Idempotency-Replayed") == "true"
	data := must.Get(io.ReadAll(answer.Body))(w.t)
	return answer.StatusCode, data
}

// must sends a request that has to be answered well, and reads the answer.
func (w *world) must(o *owner, method, path string, body any, headers ...string) map[string]any {
	w.t.Helper()
	status, data := w.do(o, method, path, body, headers...)
	if status > 299 {
		w.t.Fatalf("%s %s: got %d %s", method, path, status, data)
	}
	var out map[string]any
	if len(data) > 0 && json.Unmarshal(data, &out) != nil {
		return map[string]any{"text": string(data)}
	}
	return out
}

// form is a body of multipart/form-data.
type form struct {
	body  []byte
	media string
}

func fileForm(t testing.TB, name, content string) form {
	t.Helper()
	var body bytes.Buffer
	m := multipart.NewWriter(&body)
	part := must.Get(m.CreateFormFile("file", name))(t)
	must.Get(io.WriteString(part, content))(t)
	must.Do(t, m.Close())
	return form{body.Bytes(), m.FormDataContentType()}
}

// settle makes an owner with a session in which something was said and summarized, a
// branch, a memory and a file.
func (w *world) settle(name string) *owner {
	w.t.Helper()
	return w.furnish(&owner{name: name, key: name + "-secret-" + name + "-secret", marker: "belongs2" + name, ids: newPool()})
}

// user makes the same for an end user of ada's.
func (w *world) user(name string) *owner {
	w.t.Helper()
	marker := "belongs2" + name
	return w.furnish(&owner{name: name, key: w.signer.User(w.t, "u-"+marker), marker: marker, ids: newPool()})
}

func (w *world) furnish(o *owner) *owner {
	w.t.Helper()
	session := w.must(o, "POST", "/api/v1/sessions", map[string]any{"title": o.marker, "user_id": "u-" + o.marker})["id"].(string)
	o.ids.add("session", session)
	at := "/api/v1/sessions/" + session
	for i := range 4 {
		said := w.must(o, "POST", at+"/messages", map[string]any{"content": fmt.Sprintf("%s asks %d %s", o.marker, i, strings.Repeat("and more words ", 40))})
		run := said["run"].(map[string]any)
		o.ids.add("run", run["id"].(string))
		o.ids.add("message", run["user_message_id"].(string))
		o.ids.add("session/message", session+"/"+run["user_message_id"].(string))
	}
	w.must(o, "POST", at+"/summarize", nil)
	o.ids.add("memory", w.must(o, "POST", "/api/v1/memories", map[string]any{"content": o.marker + " remembers"})["id"].(string))
	if o.isKey() {
		w.must(o, "PUT", at+"/slack", map[string]any{"team": w.slackTeam, "channel": "C" + strings.ToUpper(o.name), "thread": "1700000000.000100"})
		w.must(o, "PUT", "/api/v1/webhook", map[string]any{"url": "https://hooks.example.com/" + o.marker})
	}
	o.ids.add("blob", w.must(o, "POST", "/api/v1/blobs", fileForm(w.t, "note.txt", o.marker+" wrote this down"))["id"].(string))
	return o
}

// pool is ids by their kind, the newest of them. Safe for concurrent use.
type pool struct {
	mu  sync.Mutex
	ids map[string][]string // guarded by mu
}

func newPool() *pool { return &pool{ids: map[string][]string{}} }

const pooled = 24 // of each kind

func (p *pool) add(kind, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := append(p.ids[kind], id)
	p.ids[kind] = ids[max(0, len(ids)-pooled):]
}

// pick returns the nth id of the kind, "" if there is none.
func (p *pool) pick(kind string, n int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ids[kind]) == 0 {
		return ""
	}
	return p.ids[kind][n%len(p.ids[kind])]
}

// kindOf returns what kind of id a parameter of a path takes, "" for one that takes
// none of an owner's.
func kindOf(path, param string) string {
	switch {
	case param == "mid":
		return "message"
	case param != "id":
		return ""
	case strings.HasPrefix(path, "/api/v1/sessions/"):
		return "session"
	case strings.HasPrefix(path, "/api/v1/runs/"):
		return "run"
	case strings.HasPrefix(path, "/api/v1/memories/"):
		return "memory"
	case strings.HasPrefix(path, "/api/v1/blobs/"):
		return "blob"
	}
	return ""
}
