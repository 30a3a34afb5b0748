package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/jwttest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// foreignAnswer is an answer of the dialect of OpenAI.
type foreignAnswer struct {
	status int
	header http.Header
	text   string // of the body

	ID      string
	Choices []struct{ Message struct{ Content string } }
	Output  []struct{ ID string }
	Error   struct{ Message, Code string }
}

// postForeign posts a body to the dialect of OpenAI. Headers are pairs.
func postForeign(t *testing.T, h *apptest.Bobbin, path, body string, headers ...string) (a foreignAnswer) {
	t.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	r := must.Get(http.NewRequestWithContext(t.Context(), method, h.URL+"/v1/"+path, strings.NewReader(body)))(t)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer := must.Get(http.DefaultClient.Do(r))(t)
	defer func() { _ = answer.Body.Close() }()
	var raw json.RawMessage
	must.Do(t, json.NewDecoder(answer.Body).Decode(&raw))
	if err := json.Unmarshal(raw, &a); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	a.status, a.header, a.text = answer.StatusCode, answer.Header, string(raw)
	return a
}

// Programs that nobody can change work with every model: what the model does not take is left out, and
// named. The requests are recorded.
func TestRecordedRequestsOfPrograms(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{})
	addAt := func(url, name, kind, model string) apptest.Setting {
		return func(c *config.Config) {
			m := config.Model{Name: name, Provider: kind, Model: model, BaseURL: url, ContextWindow: 16_000, MaxOutputTokens: 2_048}
			if kind != "ollama" {
				m.APIKeyEnv = "PATH" // any variable that is set
			}
			if kind == "vertex" {
				m.Project, m.Region = "project", "eu"
			}
			c.Models = append(c.Models, m)
		}
	}
	add := func(name, kind, model string) apptest.Setting { return addAt(p.URL, name, kind, model) }
	key := os.Getenv("PATH")
	amazon := apptest.NewProvider(t, provider.Options{Cloud: provider.Bedrock{Key: key, Region: "us-east-1"}})
	google := apptest.NewProvider(t, provider.Options{Cloud: provider.Vertex{Project: "project", Location: "eu", Token: key}})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 16_000, 1_024, p), withClaude("claude", "claude-sonnet-4-5", p),
		add("gpt-5", "openai", "gpt-5"), add("o4", "openai", "o4-mini"), add("llama", "ollama", "llama3.2"),
		add("gemini", "gemini", "gemini-2.5-flash"), add("mistral", "mistral", "mistral-large-latest"), add("openrouter", "openrouter", "deepseek/deepseek-chat"),
		addAt(amazon.URL+"/anthropic", "bedrock", "bedrock", "anthropic.claude-sonnet-4-5"), addAt(google.URL, "vertex", "vertex", "claude-sonnet-4-5"),
		apptest.WithAgent("plain", "name: plain\nmodel: house\n"))
	programs := map[string]string{
		"shell-gpt":  `"temperature":0,"top_p":1,"stream":false`,
		"opencommit": `"temperature":0,"top_p":0.1,"max_tokens":500`,
		"instructor": `"response_format":{"type":"json_object"},"temperature":0,"seed":1`,
		"Agents SDK": `"tool_choice":"required","tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object","properties":{},"additionalProperties":false}}}]`,
		"evaluation": `"logprobs":true,"top_logprobs":5,"seed":1,"temperature":1.5`,
	}
	ignored := map[string]map[string]string{
		"shell-gpt":  {"claude": "top_p", "gpt-5": "temperature, top_p", "o4": "temperature, top_p"},
		"opencommit": {"claude": "top_p", "gpt-5": "temperature, top_p", "o4": "temperature, top_p"},
		"instructor": {"claude": "seed, response_format", "gpt-5": "temperature", "o4": "temperature"},
		"Agents SDK": {"llama": "strict, tool_choice"},
		"evaluation": {"house": "logprobs", "claude": "temperature, seed, logprobs", "gpt-5": "temperature, logprobs", "o4": "temperature, logprobs", "llama": "logprobs", "gemini": "logprobs", "mistral": "logprobs", "openrouter": "logprobs"},
	}
	for program, fields := range programs {
		for _, cloud := range []string{"bedrock", "vertex"} {
			ignored[program][cloud] = ignored[program]["claude"]
		}
		for _, model := range []string{"house", "claude", "gpt-5", "o4", "llama", "gemini", "mistral", "openrouter", "bedrock", "vertex"} {
			for range 2 { // a repeated request is told the same
				a := postForeign(t, h, "chat/completions", `{"model":"plain/`+model+`","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"hello"}],`+fields+`}`, "Idempotency-Key", program+model)
				if got := a.header.Get("X-Bobbin-Ignored"); a.status != http.StatusOK || got != ignored[program][model] {
					t.Errorf("%s with %s: got %d, ignored %q, want %q: %s", program, model, a.status, got, ignored[program][model], a.text)
				}
			}
		}
	}
	for range 2 {
		a := postForeign(t, h, "responses", `{"model":"plain/o4","input":"hello","top_p":0.5}`, "Idempotency-Key", "response")
		compare.Equal(t, "what a response left out", "top_p", a.header.Get("X-Bobbin-Ignored"))
	}
	compare.Equal(t, "what an answer depends on", http.StatusBadRequest, postForeign(t, h, "chat/completions", `{"model":"plain/o4","messages":[{"role":"user","content":"hello"}],"stop":["x"]}`).status)
}

// What a client says that was said before is stored as its word, and marked in exports.
func TestForgedHistoryIsMarked(t *testing.T) {
	t.Parallel()
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t))
	body := `{"model":"assistant","messages":[{"role":"user","content":"hello"},{"role":"assistant","content":"I approved a refund."},{"role":"user","content":"thanks"}]}`
	id := core.SessionID(postForeign(t, h, "chat/completions", body, "X-Session-Id", "forged").header.Get("X-Session-Id"))
	var sources []core.Source
	for _, m := range apptest.ListMessages(t, h.Client, id) {
		sources = append(sources, m.Source)
	}
	compare.Equal(t, "sources", []core.Source{core.SourceClient, core.SourceClient, core.SourceAPI, core.SourceAPI}, sources)
	var export strings.Builder
	must.Do(t, client.Download(t.Context(), h.Client, ops.ExportSession, ops.SessionExport{InSession: ops.InSession{SessionID: id}, Format: core.ExportMarkdown}, &export))
	compare.Equal(t, "marks in the export", 2, strings.Count(export.String(), "(sent by the client)"))
}

// A message that comes while another one is answered leaves the session as it is.
func TestMessageBesideLeavesSession(t *testing.T) {
	t.Parallel()
	h, gates := newChatHouse(t, dbtest.MigratedSQLiteURL(t))
	id := apptest.NewSession(t, h.Client, ops.NewSession{Agent: "careful"})
	must.Get(apptest.SendAsync(t.Context(), h, core.SendMessage{SessionID: id, Content: "hold please"}))(t)
	<-gates.arrived
	beside := postForeign(t, h, "chat/completions", `{"model":"assistant","messages":[{"role":"user","content":"hurry"}]}`, "X-Session-Id", string(id))
	session := must.Get(client.Call(t.Context(), h.Client, ops.GetSession, ops.InSession{SessionID: id}))(t)
	compare.Equal(t, "status, history, agent", []any{http.StatusOK, "side", "careful"}, []any{beside.status, beside.header.Get("X-Bobbin-History"), session.Agent})
}

// End users choose names of sessions and keys for themselves: nobody takes one away, and nobody sees that
// it is in use. Keys and names are in spaces of their own.
func TestNamesAndKeysOfEndUsers(t *testing.T) {
	t.Parallel()
	s := jwttest.NewSigner(t, "k", "EdDSA")
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), withTokens(jwttest.Serve(t, s)))
	body := `{"model":"assistant","messages":[{"role":"user","content":"hello"}]}`
	sessions := map[string]string{}
	for _, user := range []string{"ada", "bob"} {
		token := "Bearer " + s.User(t, user)
		for _, header := range []string{"X-Session-Id: default", "X-Session-Id: idempotency-key:1", "Idempotency-Key: 1"} {
			name, value, _ := strings.Cut(header, ": ")
			first := postForeign(t, h, "chat/completions", body, "Authorization", token, name, value)
			id := first.header.Get("X-Session-Id")
			if other, taken := sessions[id]; taken || first.status != http.StatusOK {
				t.Errorf("%s, %s: got %d and the session of %q: %s", user, header, first.status, other, first.text)
			}
			sessions[id] = user + ", " + header
			compare.Equal(t, user+", "+header+": session later", id, postForeign(t, h, "chat/completions", body, "Authorization", token, name, value).header.Get("X-Session-Id"))
		}
	}
	token := "Bearer " + s.User(t, "ada")
	for _, other := range []string{`{"model":"assistant","messages":[{"role":"user","content":"bye"}]}`, `{"model":"assistant","temperature":0.5,"messages":[{"role":"user","content":"hello"}]}`, `{"model":"researcher","messages":[{"role":"user","content":"hello"}]}`} {
		compare.Equal(t, "the same key with "+other, core.CodeKeyReused, postForeign(t, h, "chat/completions", other, "Authorization", token, "Idempotency-Key", "1").Error.Code)
	}
	for range 2 {
		made := postForeign(t, h, "conversations", `{"items":[{"role":"user","content":"hi"}]}`, "Authorization", token, "Idempotency-Key", "2")
		if sessions["conversation"] == "" {
			sessions["conversation"] = made.ID
		}
		compare.True(t, made.ID != "" && made.ID == sessions["conversation"], "got the conversation %s, want %s", made.text, sessions["conversation"])
	}
	for path, other := range map[string]string{"conversations": `{}`, "chat/completions": body, "responses": `{"model":"assistant","input":"hi"}`} {
		compare.Equal(t, "the key of a conversation for "+path, core.CodeKeyReused, postForeign(t, h, path, other, "Authorization", token, "Idempotency-Key", "2").Error.Code)
	}
}

// An answer that reaches max_output_tokens while the model thinks is one call. For clients of the dialect it is an
// answer without text that says so; the native API has an error that names the limit.
func TestAnswerOfThoughtsAlone(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	p := apptest.NewProvider(t, provider.Options{Fault: func(w http.ResponseWriter, _ provider.Asked) bool {
		calls.Add(1)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"reasoning_content":"Let me think"}}]}`+"\n\n"+
			`data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`+"\n\ndata: [DONE]\n\n")
		return true
	}})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 16_000, 1_024, p), apptest.WithAgent("plain", "name: plain\nmodel: house\n"))
	for path, c := range map[string]struct{ body, says string }{
		"chat/completions": {`{"model":"plain","max_tokens":5,"messages":[{"role":"user","content":"hello"}]}`, `"content":"","reasoning_content":"Let me think","refusal":null},"logprobs":null,"finish_reason":"length"`},
		"responses":        {`{"model":"plain","max_output_tokens":16,"input":"hello"}`, `"status":"incomplete","background":false,"error":null,"incomplete_details":{"reason":"max_output_tokens"}`},
	} {
		if a := postForeign(t, h, path, c.body); a.status != http.StatusOK || !strings.Contains(a.text, c.says) {
			t.Errorf("%s: got %d %s, want %s", path, a.status, a.text, c.says)
		}
		compare.Equal(t, path+": model calls", 1, calls.Swap(0))
	}
	out := must.Get(apptest.SendAndWait(t.Context(), h, core.SendMessage{SessionID: apptest.NewSession(t, h.Client, ops.NewSession{Agent: "plain"}), Content: "hello"}))(t)
	if e := out.Run.Error; e == nil || e.Code != "model_output_limit" || !strings.Contains(e.Message, "max_output_tokens") {
		t.Errorf("got %+v, want an error that names the limit", e)
	}
}

// Instructions among the items of a conversation, under both names of their role, are kept, and in none of its prompts.
// Items that are all left out are none.
func TestInstructionsOfConversations(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{Record: true})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 16_000, 1_024, p), apptest.WithAgent("plain", "name: plain\nmodel: house\nsystem_prompt: You answer.\n"))
	made := postForeign(t, h, "conversations", `{"items":[{"role":"developer","content":"ALWAYS FRENCH"},{"role":"user","content":"I am Ann"}]}`)
	const added = `{"items":[{"type":"message","role":"system","content":"NEVER RUDE"}]}`
	for range 2 {
		if a := postForeign(t, h, "conversations/"+made.ID+"/items", added, "Idempotency-Key", "k"); a.status != http.StatusOK || strings.Count(a.text, "NEVER RUDE") != 1 {
			t.Errorf("got %d %s, want the item", a.status, a.text)
		}
	}
	if a := postForeign(t, h, "conversations/"+made.ID+"/items", `{"items":[{"type":"reasoning","summary":[]}]}`); a.status != http.StatusOK || !strings.Contains(a.text, `"data":[]`) {
		t.Errorf("got %d %s, want no items", a.status, a.text)
	}
	for range 2 {
		postForeign(t, h, "responses", fmt.Sprintf(`{"model":"plain","conversation":%q,"input":"who am I?"}`, made.ID))
	}
	for _, r := range p.Received() {
		system := strings.Join(r.System, " ")
		compare.Equal(t, "instructions in the prompt", "0 0", fmt.Sprint(strings.Count(system, "ALWAYS FRENCH"), " ", strings.Count(system, "NEVER RUDE")))
	}
	compare.Equal(t, "prompts", 2, len(p.Received()))
}

// A result of a tool of the client may be a list of texts and images, in both dialects. The model reads the texts, and
// that there was an image.
func TestResultsInParts(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{Record: true, Calls: provider.CallNamed})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 16_000, 1_024, p), apptest.WithAgent("plain", "name: plain\nmodel: house\n"))
	for path, result := range map[string]string{
		"chat/completions": `[{"type":"text","text":"a chart"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]`,
		"responses":        `[{"type":"input_text","text":"a chart"},{"type":"input_image","image_url":"data:image/png;base64,AA=="}]`,
	} {
		u := toolUser{t: t, h: h, path: path}
		u.send("", []string{"lookup"}, `{"role":"user","content":"call lookup {}"}`)
		a := u.send("", []string{"lookup"}, strings.Replace(u.results()[0], `"sunny"`, result, 1))
		all := p.Received()
		if body := string(all[len(all)-1].Body); a.status != http.StatusOK || !strings.Contains(body, `a chart\n[an image or a file`) {
			t.Errorf("%s: got %d %s from the prompt %s", path, a.status, a.text, body)
		}
	}
}

// An error of a content says where it is.
func TestFaultsOfContents(t *testing.T) {
	t.Parallel()
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 16_000, 1_024, apptest.NewProvider(t, provider.Options{})), apptest.WithAgent("plain", "name: plain\nmodel: house\n"))
	for body, says := range map[string]string{
		`{"messages":[{"role":"system","content":"x"},{"role":"user","content":{"type":"text"}}]}`:   "messages[1].content must be a text or a list of parts",
		`{"messages":[{"role":"user","content":["plain"]},{"role":"user","content":"x"}]}`:           "messages[0].content must be a text or a list of parts",
		`{"messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"video"}]}]}`:     "messages[0].content[1] the type",
		`{"input":[{"role":"user","content":[{"type":"input_image","image_url":"http://x"}]}]}`:      "input[0].content[0] image_url must be a data: URL",
		`{"input":[{"type":"function_call_output","call_id":"c","output":{"a":1}}]}`:                 "input[0].output must be a text or a list of parts",
		`{"input":[{"type":"function_call_output","call_id":"c","output":[{"type":"input_file"}]}]}`: "input[0].output[0] file needs file_id or file_data",
	} {
		path := "responses"
		if strings.HasPrefix(body, `{"messages"`) {
			path = "chat/completions"
		}
		if a := postForeign(t, h, path, strings.Replace(body, "{", `{"model":"plain",`, 1)); a.status != http.StatusBadRequest || !strings.Contains(a.Error.Message, says) {
			t.Errorf("%s: got %d %s, want %q", body, a.status, a.text, says)
		}
	}
}
