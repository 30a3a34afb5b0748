package conformance_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"bobbin/app/api/ops"
	apiclient "bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/golden"
	"bobbin/tests/must"
	"bobbin/tests/process"
)

// scenario is something that people do with a client.
type scenario struct {
	name     string
	protocol string // chat: all clients have it; openai: the packages of OpenAI; langchain
	run      func(t *testing.T, c *conversation)
}

// scenarios returns all of them.
func scenarios() []scenario {
	var all []scenario
	lists := map[string][]scenario{
		"chat": append(chatScenarios(), toolScenarios()...), "openai": append(openAIScenarios(), responseToolScenarios()...), "langchain": {{name: "with_structured_output", run: langChainStructured}},
	}
	for _, protocol := range []string{"chat", "openai", "langchain"} {
		for _, s := range lists[protocol] {
			s.protocol = protocol
			all = append(all, s)
		}
	}
	return all
}

// fits reports whether the client has what the scenario needs.
func (s scenario) fits(kind clientKind) bool {
	switch s.protocol {
	case "openai":
		return !kind.chatOnly
	case "langchain":
		return kind.chatOnly
	default:
		return true
	}
}

// databases returns where Bobbins of the tests store what they have: in the long form also in
// PostgreSQL.
func databases() map[string]func(testing.TB) string {
	all := map[string]func(testing.TB) string{"SQLite": dbtest.MigratedSQLiteURL, "PostgreSQL": dbtest.MigratedPostgresURL}
	if os.Getenv("BOBBIN_TEST_LONG") == "" {
		delete(all, "PostgreSQL")
	}
	return all
}

// runScenarios runs each scenario with each client on each database.
func runScenarios(t *testing.T) *results {
	t.Helper()
	all := &results{passed: map[string]bool{}}
	t.Run("databases", func(t *testing.T) {
		for database, url := range databases() {
			t.Run(database, func(t *testing.T) {
				t.Parallel()
				b := newBobbin(t, url(t))
				t.Run("clients", func(t *testing.T) {
					for _, kind := range clientKinds() {
						t.Run(kind.script, func(t *testing.T) {
							t.Parallel()
							b.runClient(t, kind, func(s scenario, ok bool) { all.note(kind, s, ok) })
						})
					}
				})
				if n := b.small.Rejected(); n > 0 {
					t.Errorf("got %d prompts over the window, want none", n)
				}
			})
		}
	})
	return all
}

// runClient runs the scenarios of a client beside each other.
func (b *bobbin) runClient(t *testing.T, kind clientKind, note func(s scenario, ok bool)) {
	t.Helper()
	cl := startClient(t, kind)
	t.Run("scenarios", func(t *testing.T) {
		for _, s := range scenarios() {
			if !s.fits(kind) {
				continue
			}
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				defer func() { note(s, !t.Failed()) }()
				mark := strings.NewReplacer(" ", "-", "tool", "t--l").Replace(s.name + " of " + kind.script) // the word tool has the model call one
				s.run(t, &conversation{bobbin: b, cl: cl, mark: mark, model: "plain"})
			})
		}
	})
}

// results are the scenarios that passed. Safe for concurrent use.
type results struct {
	mu     sync.Mutex
	passed map[string]bool // by client and scenario: on all databases; guarded by mu
}

func (r *results) note(kind clientKind, s scenario, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := kind.name + "/" + s.name
	before, known := r.passed[key]
	r.passed[key] = ok && (before || !known)
}

// conversation is a scenario with a client.
type conversation struct {
	*bobbin

	cl       *client
	mark     string // in its questions and in the name of its session
	model    string
	metadata map[string]any
	history  []any
}

// object is a JSON object.
type object = map[string]any

// inSession has the conversation stored in a session of the client's own name.
func (c *conversation) inSession() *conversation {
	c.metadata = object{"session_id": c.mark}
	return c
}

// user returns a message of the user.
func user(text string) object { return object{"role": "user", "content": text} }

// assistant returns a message of the assistant.
func assistant(text string) object { return object{"role": "assistant", "content": text} }

// question returns a question that only this scenario has.
func (c *conversation) question(text string) string { return text + " (" + c.mark + ")" }

// newCall returns a call of Alice's client.
func (c *conversation) newCall(method string, params object, args ...any) call {
	return call{Method: method, Args: args, Params: params, URL: c.front.url, Key: aliceKey, Headers: map[string]string{headerCase: c.mark}}
}

// newChat returns a call of a chat completion.
func (c *conversation) newChat(method string, messages []any, more object) call {
	params := object{"model": c.model, "messages": messages}
	if c.metadata != nil {
		params["metadata"] = c.metadata
	}
	for name, value := range more {
		params[name] = value
	}
	return c.newCall("chat.completions."+method, params)
}

// do makes the call and returns its result.
func (c *conversation) do(t *testing.T, made call) outcome {
	t.Helper()
	out := await(t, c.cl.begin(t, made))
	must.True(t, out.fault == nil, "%s: %s", made.Method, out.fault)
	return out
}

// fail makes the call and returns its error.
func (c *conversation) fail(t *testing.T, made call) *fault {
	t.Helper()
	out := await(t, c.cl.begin(t, made))
	must.True(t, out.fault != nil, "%s: got %s, want an error", made.Method, out.result)
	return out.fault
}

// completion is a chat completion as the clients return it.
type completion struct {
	ID      string
	Choices []struct {
		Message struct {
			Content   string
			ToolCalls []toolCall `json:"tool_calls"`
		}
		Delta        struct{ Content string }
		FinishReason string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
	}
}

type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// text returns the text of the answer.
func (c completion) text() string {
	if len(c.Choices) == 0 {
		return ""
	}
	return c.Choices[0].Message.Content
}

// ask adds a question to the history and returns the answer to it.
func (c *conversation) ask(t *testing.T, text string) completion {
	t.Helper()
	c.history = append(c.history, user(text))
	got := decode[completion](t, c.do(t, c.newChat("create", c.history, nil)).result)
	c.history = append(c.history, assistant(got.text()))
	return got
}

// deltas returns the texts of a stream of chunks.
func deltas(t *testing.T, events []json.RawMessage) string {
	t.Helper()
	var b strings.Builder
	for _, raw := range events {
		for _, choice := range decode[completion](t, raw).Choices {
			b.WriteString(choice.Delta.Content)
		}
	}
	return b.String()
}

// session returns the session of the latest answer.
func (c *conversation) session() core.SessionID {
	return core.SessionID(c.front.header(c.mark, "X-Session-Id"))
}

// log returns the messages of the session with all branches.
func (c *conversation) log(t *testing.T, id core.SessionID) []core.Message {
	t.Helper()
	var all []core.Message
	q := core.MessageQuery{AllBranches: true, PageQuery: core.PageQuery{Limit: core.MaxPageLimit}}
	for {
		page := must.Get(apiclient.Call(t.Context(), c, ops.ListMessages, ops.MessageList{InSession: ops.InSession{SessionID: id}, MessageQuery: q}))(t)
		all = append(all, page.Items...)
		if page.NextCursor == nil {
			return all
		}
		q.Cursor = *page.NextCursor
	}
}

// path returns the texts of the messages on the current path.
func path(messages []core.Message) string {
	var texts []string
	for _, m := range messages {
		if m.OnPath && m.Content != "" {
			texts = append(texts, string(m.Role)+": "+m.Content)
		}
	}
	return strings.Join(texts, "\n")
}

// latestRun returns the latest run of the session.
func (c *conversation) latestRun(t *testing.T, id core.SessionID) core.Run {
	t.Helper()
	page := must.Get(apiclient.Call(t.Context(), c, ops.ListRuns, ops.SessionPage{InSession: ops.InSession{SessionID: id}}))(t)
	must.True(t, len(page.Items) != 0, "the session has no run")
	return must.Get(apiclient.Call(t.Context(), c, ops.GetRun, ops.InRun{RunID: page.Items[0].ID}))(t)
}

// wantEqual checks a value.
func wantEqual[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	compare.Equal(t, what, want, got)
}

// The page with the table, and the lines around it.
const (
	clientsPage = "../../docs/CLIENTS.md"
	tableBegin  = "<!-- written by go test ./tests/conformance -update, with BOBBIN_TEST_LONG=1 -->\n"
	tableEnd    = "<!-- end -->\n"
)

// People use a Bobbin with the client packages that they have. The table of the documentation is
// that of the run; of clients that the short form does not run it says that all is well.
func TestShowDialects(t *testing.T) {
	t.Parallel()
	process.FindNodeClients(t)
	results := runScenarios(t)
	logTable(t, results.rows(clientKinds()))
	rows := results.rows(allClientKinds())
	var b strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	want := "\n" + b.String() + "\n"
	before, rest, found := strings.Cut(string(must.Get(os.ReadFile(clientsPage))(t)), tableBegin)
	_, after, ends := strings.Cut(rest, tableEnd)
	must.True(t, found && ends, "%s has no place for the table", clientsPage)
	golden.Check(t, clientsPage, before+tableBegin+want+tableEnd+after)
}

// rows returns the table of clients and scenarios.
func (r *results) rows(kinds []clientKind) [][]string {
	rows := [][]string{{"what"}}
	for _, kind := range kinds {
		rows[0] = append(rows[0], kind.name)
	}
	for _, s := range scenarios() {
		row := []string{s.name}
		for _, kind := range kinds {
			row = append(row, r.cell(kind, s))
		}
		rows = append(rows, row)
	}
	return rows
}

// cell returns what the table says of a scenario with a client.
func (r *results) cell(kind clientKind, s scenario) string {
	passed, run := r.passed[kind.name+"/"+s.name]
	switch {
	case !s.fits(kind):
		return "–"
	case run && !passed:
		return "fails"
	default:
		return "✓"
	}
}

// logTable prints the rows as a table.
func logTable(t *testing.T, rows [][]string) {
	t.Helper()
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // a strings.Builder takes everything
	t.Logf("\n%s", b.String())
}
