package openapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"bobbin/app/api/openapi"
	"bobbin/app/api/ops"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
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
	must.True(w.t, status <= 299, "%s %s: got %d %s", method, path, status, data)
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

// TestDocumentIsOpenAPI: the document is valid OpenAPI 3.1, by the schema of the
// OpenAPI Initiative and by that of JSON Schema 2020-12.
func TestDocumentIsOpenAPI(t *testing.T) {
	t.Parallel()
	value := must.Get(document.Decode(openapi.New().JSON))(t)
	meta := must.Get(document.Decode(must.Get(os.ReadFile("testdata/oas-3.1-schema-2022-10-07.json"))(t)))(t)
	c := jsonschema.NewCompiler()
	const at = "https://spec.openapis.org/oas/3.1/schema/2022-10-07"
	must.Do(t, c.AddResource(at, meta))
	compare.Error(t, "the document is not OpenAPI 3.1", nil, must.Get(c.Compile(at))(t).Validate(value))
	dialect := must.Get(jsonschema.NewCompiler().Compile("https://json-schema.org/draft/2020-12/schema"))(t)
	for name, s := range value.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any) {
		compare.Error(t, fmt.Sprintf("schema %s", name), nil, dialect.Validate(s))
	}
}

// TestOperations: every operation has a name of its own and the parameters of its path, and its
// examples are what it asks for.
func TestOperations(t *testing.T) {
	t.Parallel()
	d := must.Get(document.Load())(t)
	names := map[string]bool{}
	for _, op := range d.Operations {
		compare.True(t, op.ID != "" && !names[op.ID], "%s %s: operationId %q is empty or taken", op.Method, op.Path, op.ID)
		names[op.ID] = true
		rest := op.Path
		for _, p := range op.Params {
			compare.True(t, p.In != "path" || strings.Contains(rest, "{"+p.Name+"}"), "%s: the path has no {%s}", op.ID, p.Name)
			rest = strings.Replace(rest, "{"+p.Name+"}", "", 1)
		}
		compare.True(t, !strings.Contains(rest, "{"), "%s: a parameter of %s is not described", op.ID, op.Path)
		for media, schema := range op.Body {
			if example, ok := schema.Example.(map[string]any); ok && schema.Check(example) != nil {
				t.Errorf("%s: example of %s: %v", op.ID, media, schema.Check(example))
			}
		}
	}
}

// named is a setting with its default in brackets, as documents tell it: `files.bytes` (20 MiB).
var named = regexp.MustCompile("`([a-z][a-z_]*\\.[a-z_.]+)` \\(([0-9][0-9.,]* ?(?:KiB|MiB|GiB|s|min|minutes|h|days|d))\\b")

// What documents say that a setting is by default is its default.
func TestDefaultsOfDocuments(t *testing.T) {
	t.Parallel()
	defaults := map[string]string{}
	for _, k := range config.Keys() {
		defaults[k.Name] = plainNumber(k.Default)
	}
	files := must.Get(filepath.Glob("../../docs/*.md"))(t)
	checked := 0
	for _, name := range append(files, "../../README.md", "../../app/web/ui/openapi.json") {
		raw := must.Get(os.ReadFile(name))(t)
		for _, m := range named.FindAllStringSubmatch(string(raw), -1) {
			want, known := defaults[m[1]]
			if !known {
				continue
			}
			checked++
			compare.Equal(t, filepath.Base(name)+": "+m[1], want, plainNumber(m[2]))
		}
	}
	compare.True(t, checked >= 10, "got %d defaults in the documents, want those that are there", checked)
}

// units are the ways in which documents and settings write one unit.
var units = strings.NewReplacer(",", "", " ", "", "minutes", "m", "min", "m", "days", "d", "m0s", "m", "h0m0s", "h")

func plainNumber(text string) string { return units.Replace(text) }

// API.md: what a second request with the same Idempotency-Key does, on every operation that is a POST or PATCH. Those
// of OpenAI's are in app/api and tests/conformance.
func TestRepeatedKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dbtest.MigratedSQLiteURL(t))
	ada, kim, checked := w.settle("ada"), w.user("kim"), 0
	instruction := w.must(ada, "POST", "/api/v1/sessions/"+ada.ids.pick("session", 0)+"/standing-instructions", map[string]any{"text": "Be brief."})["id"].(string)
	ada.ids.add("standing instruction", instruction)
	for _, op := range operations() {
		if op.Method() != http.MethodPost && op.Method() != http.MethodPatch || slices.Contains([]string{"decideApproval", "fixSlackPost", "retryDelivery"}, op.ID) { // there is none
			continue
		}
		path, body, headers := pathOf(op, ada.ids), w.bodyOf(op, ops.Field{}, ""), []string{"Prefer: respond-async", "Idempotency-Key: key-" + op.ID}
		who := ada
		switch op.ID {
		case "uploadFile":
			body = fileForm(t, "a.txt", "text")
		case "searchMemories":
			body = map[string]any{"query": "word"}
		case "createDeletion":
			who, body = kim, map[string]any{"user_id": "u-" + kim.marker} // with the scope for it
		}
		status, first := w.do(who, op.Method(), path, body, headers...)
		again, second := w.do(who, op.Method(), path, body, headers...)
		same := status < 300 && status == again && string(first) == string(second)
		switch asks := slices.Contains([]string{"sendMessage", "editMessage", "regenerateMessage"}, op.ID); {
		case op.Scope == core.CanDelete:
			same = again == http.StatusUnprocessableEntity && !w.replayed
		case asks: // the key is its client_message_id, and the run goes on
			run, _, _ := strings.Cut(string(first), `,"session_id"`)
			same = status < 300 && strings.HasPrefix(string(second), run) && strings.Contains(string(second), `"key-`+op.ID) && !w.replayed
			w.do(who, op.Method(), path, body, headers[1]) // waits for the run's end: the session is not busy then
		case op.Scope == core.CanRead:
			same = status < 300 && status == again && !w.replayed
		default:
			same = same && w.replayed
		}
		if checked++; !same {
			t.Errorf("%s: got %d %.300s, and then %d %.300s, replayed %t", op.Route, status, first, again, second, w.replayed)
		}
	}
	appended, body := "/api/v1/sessions/"+ada.ids.pick("session", 0)+"/messages", map[string]any{"content": "hi", "run": false}
	status, first := w.do(ada, "POST", appended, body, "Idempotency-Key: append")
	if again, second := w.do(ada, "POST", appended, body, "Idempotency-Key: append"); status != http.StatusCreated || again != status || string(first) != string(second) {
		t.Errorf("a message without a run: got %d %.300s, and then %d %.300s", status, first, again, second)
	}
	compare.True(t, checked >= 15, "got %d operations, want at least 15", checked)
}
