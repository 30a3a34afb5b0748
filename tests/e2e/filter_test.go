package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// filtered is a server whose provider refuses every request with the word FLAGGED while the filter is on, and else
// cuts its answer to CUT off. It refuses prompts of more bytes than its window with the status, if there is one,
// those with the word POISON, without saying why, and those with an image; it says nothing to those with SENSITIVE, as its
// filter objects, nor to the next ones of a number. While it is healthy, it takes both words.
type filtered struct {
	*apptest.Bobbin
	on, healthy                     atomic.Bool
	status, window, silent, refused atomic.Int64
	hold                            sync.Mutex // while it is locked, answers wait after their first words
}

func newFiltered(t *testing.T, settings ...apptest.Setting) *filtered {
	t.Helper()
	w := &filtered{}
	p := apptest.NewProvider(t, provider.Options{Hold: func(string) { w.hold.Lock(); defer w.hold.Unlock() }, Summarize: func(material string) string {
		return provider.Summary(material) + strings.Repeat(" FLAGGED.", strings.Count(material, "INFECTED"))
	}})
	proxy := httputil.NewSingleHostReverseProxy(must.Get(url.Parse(strings.TrimSuffix(p.URL, "/v1")))(t))
	filter := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if status := w.status.Load(); status > 0 && int64(len(body)) > w.window.Load() {
			w.refused.Add(1)
			http.Error(rw, "Chat completion aborted", int(status))
			return
		}
		if image := bytes.Contains(body, []byte("data:image")); image || bytes.Contains(body, []byte("POISON")) && !w.healthy.Load() {
			w.refused.Add(1)
			http.Error(rw, map[bool]string{true: "Could not process image", false: "Bad Request"}[image], http.StatusBadRequest)
			return
		}
		if filters := bytes.Contains(body, []byte("SENSITIVE")) && !w.healthy.Load(); filters || w.silent.Add(-1) >= 0 {
			w.refused.Add(1)
			rw.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(rw, `data: {"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`+"\n\ndata: [DONE]\n\n", map[bool]string{true: "sensitive", false: "stop"}[filters])
			return
		}
		if err == nil && w.on.Load() && bytes.Contains(body, []byte("FLAGGED")) {
			http.Error(rw, `{"error":{"message":"The prompt was filtered.","code":"content_filter"}}`, http.StatusBadRequest)
			return
		}
		if err == nil && !w.on.Load() && bytes.Contains(body, []byte("CUT")) {
			w.refused.Add(1)
			rw.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(rw, `data: {"choices":[{"index":0,"delta":{"content":"half"},"finish_reason":"content_filter"}]}`+"\n\ndata: [DONE]\n\n")
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(filter.Close)
	w.Bobbin = apptest.New(t, dbtest.MigratedSQLiteURL(t), append([]apptest.Setting{apptest.WithModel("m", 8_192, 1_024, p), func(c *config.Config) { c.Models[0].BaseURL = filter.URL + "/v1" },
		apptest.WithAgent("plain", "name: plain\nmodel: m\n")}, settings...)...)
	return w
}

// Whatever a filter objects to, and whether it was answered, summarized or neither, the conversation goes on: each
// later message is answered, and once a summary covers the text nothing is refused any more, unless the summary has it.
// What was never answered is in no prompt; other prompts that are refused are sent without what was answered half, or alone.
func TestFilterStopsNoConversation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flagged string // the message
		on      bool   // the filter is, when it comes
		run     core.RunStatus
		warned  string // which of the second message and the last one is warned of
	}{
		"never answered": {"Tell me about FLAGGED.", true, core.RunFailed, ""},
		"half answered":  {"Tell me about FLAGGED. CUT", false, core.RunSucceeded, "second"},
		"answered":       {"Tell me about FLAGGED.", false, core.RunSucceeded, "second"},
		"in the summary": {"Tell me about INFECTED.", true, core.RunSucceeded, "last"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFiltered(t)
			w.on.Store(c.on)
			id := apptest.NewSession(t, w.Client, ops.NewSession{Agent: "plain"})
			apptest.SendMessage(t, w.Client, core.SendMessage{SessionID: id, Content: "hello"})
			first := apptest.ReadTurn(t, apptest.Send(t.Context(), w, core.SendMessage{SessionID: id, Content: c.flagged}))
			compare.Equal(t, "the message", c.run, first.Run.Status)
			w.on.Store(true)
			var warned []string
			var last core.ContextReport
			for i := range 12 {
				turn := apptest.SendMessage(t, w.Client, core.SendMessage{SessionID: id, Content: fmt.Sprintf("message %d", i) + strings.Repeat(fmt.Sprintf(" lorem ipsum %d", i), 150)})
				if which := map[int]string{1: "second", 11: "last"}[i]; slices.ContainsFunc(turn.Events, func(e core.Event) bool { return e.Type == core.EventContextWarning }) && which != "" {
					warned = append(warned, which)
				}
				must.Do(t, json.Unmarshal(turn.Run.Context, &last))
			}
			versions := must.Get(client.Call(t.Context(), w.Client, ops.ListSummaries, ops.SessionPage{InSession: ops.InSession{SessionID: id}}))(t).Items // the newest first
			if name == "answered" && !slices.ContainsFunc(versions, func(v core.Summary) bool { return strings.Contains(v.Content, "message 3") }) {
				t.Errorf("no summary has the texts that the filter took: %+v", versions)
			}
			if n := len(versions); n == 0 || strings.Contains(versions[n-1].Content, "FLAGGED") != (last.Coverage.Summarized == 0) || strings.Join(warned, " ") != c.warned {
				t.Errorf("got warnings of %q, the coverage %+v, with the summaries %+v", warned, last.Coverage, versions)
			}
		})
	}
}

// A client of OpenAI's dialect reads in a header that the answer was made without a part of its messages.
func TestHeaderOfFilteredMessages(t *testing.T) {
	t.Parallel()
	w := newFiltered(t)
	w.on.Store(true)
	talk := `[{"role":"user","content":"FLAGGED"},{"role":"assistant","content":"no"},{"role":"user","content":"and two?"}]`
	for path, c := range map[string]struct{ body, want string }{
		"chat/completions": {`{"model":"plain","logprobs":true,"messages":` + talk + `}`, "logprobs, messages"},
		"responses":        {`{"model":"plain","input":` + talk + `}`, "input"},
	} {
		a := postForeign(t, w.Bobbin, path, c.body)
		compare.Equal(t, path, []any{http.StatusOK, c.want}, []any{a.status, a.header.Get("X-Bobbin-Ignored")})
	}
}

// A server that has a quarter of the window that the settings say, and does not say so, is sent shorter prompts until it
// answers one; then it refuses none of the session. One that says that it is overloaded may be: a shorter prompt is tried
// from the second message on, and only two in a row that were answered show a smaller window.
func TestWindowOfTheSettingsIsTooLarge(t *testing.T) {
	t.Parallel()
	for status, want := range map[int64][]int64{ // the refusals after each message, with what llm.WithRetry does
		http.StatusBadRequest: {2, 2, 2, 2}, http.StatusInternalServerError: {4, 8, 12, 12}, http.StatusServiceUnavailable: {4, 8, 12, 12},
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			w := newFiltered(t, func(c *config.Config) { c.Models[0].ContextWindow = 32_768 })
			id := w.importLong(t, "lorem")
			w.window.Store(34 << 10)
			w.status.Store(status)
			var refused []int64
			var last core.ContextReport
			for i := range 4 {
				turn := apptest.ReadTurn(t, apptest.Send(t.Context(), w, core.SendMessage{SessionID: id, Content: "go on"}))
				if failed := i == 0 && status != http.StatusBadRequest; failed != (turn.Run.Status == core.RunFailed) {
					t.Errorf("got the run %s of message %d, want it failed: %v", turn.Run.Status, i, failed)
				}
				refused = append(refused, w.refused.Load())
				if i == 3 {
					must.Do(t, json.Unmarshal(turn.Run.Context, &last))
				}
			}
			if !slices.Equal(refused, want) || last.WindowFrom != "provider" || last.Window > 8_192 {
				t.Errorf("got %v refusals after each message, want %v, the window %d of %s", refused, want, last.Window, last.WindowFrom)
			}
			compare.Equal(t, "the window of another session", 32_768, w.windowOf(t, apptest.NewSession(t, w.Client, ops.NewSession{Agent: "plain"})))
		})
	}
}

// importLong creates a session with 180 messages, of which the first one begins with the word.
func (w *filtered) importLong(t *testing.T, word string) core.SessionID {
	t.Helper()
	id := apptest.NewSession(t, w.Client, ops.NewSession{Agent: "plain"})
	said := `{"role":"user","content":"` + strings.Repeat("lorem ipsum ", 90) + `"}` + "\n" + `{"role":"assistant","content":"ok"}` + "\n"
	body := strings.Replace(strings.Repeat(said, 90), "lorem", word, 1)
	must.Get(w.ImportMessages(t.Context(), core.ImportMessages{SessionID: id, Body: strings.NewReader(body), Format: core.ImportLines}))(t)
	return id
}

// windowOf returns the window that the session's next message is planned for.
func (w *filtered) windowOf(t *testing.T, id core.SessionID) int {
	t.Helper()
	turn := apptest.SendMessage(t, w.Client, core.SendMessage{SessionID: id, Content: "hello"})
	var report core.ContextReport
	must.Do(t, json.Unmarshal(turn.Run.Context, &report))
	return report.Window
}

// What a provider refuses without saying why, and accepts in a shorter prompt that lacks it, makes the window of that
// session smaller, down to a quarter of what was refused, and that of no other.
func TestRefusedMessageShrinksNoOtherSession(t *testing.T) {
	t.Parallel()
	w := newFiltered(t, func(c *config.Config) { c.Models[0].Name, c.Models[0].ContextWindow = "gpt-4o", 0 }, apptest.WithAgent("plain", "name: plain\nmodel: gpt-4o\n"),
		func(c *config.Config) { c.DefaultLLM = "gpt-4o" })
	other := apptest.NewSession(t, w.Client, ops.NewSession{Agent: "plain"})
	compare.Equal(t, "the window before", 128_000, w.windowOf(t, other))
	id := w.importLong(t, "POISON")
	apptest.SendMessage(t, w.Client, core.SendMessage{SessionID: id, Content: "go on"})
	compare.Equal(t, "refused", 1, w.refused.Load())
	for _, session := range []core.SessionID{other, apptest.NewSession(t, w.Client, ops.NewSession{Agent: "plain"})} {
		compare.Equal(t, "the window of another session", 128_000, w.windowOf(t, session))
	}
}

// An outage costs each message two calls more, from the second on, and no conversation its words.
func TestOutageShortensNoConversation(t *testing.T) {
	t.Parallel()
	w := newFiltered(t, func(c *config.Config) { c.Models[0].ContextWindow = 32_768 })
	id := w.importLong(t, "lorem")
	w.status.Store(http.StatusServiceUnavailable)
	for _, want := range []int64{4, 10} {
		turn := apptest.ReadTurn(t, apptest.Send(t.Context(), w, core.SendMessage{SessionID: id, Content: "go on"}))
		compare.Equal(t, "the run", core.RunFailed, turn.Run.Status)
		compare.Equal(t, "calls", want, w.refused.Load())
	}
	w.status.Store(0)
	turn := apptest.SendMessage(t, w.Client, core.SendMessage{SessionID: id, Content: "go on"})
	var report core.ContextReport
	must.Do(t, json.Unmarshal(turn.Run.Context, &report))
	compare.Equal(t, "the window, and messages in the prompt", []int{32_768, 183}, []int{report.Window, report.Coverage.Verbatim})
}

// say sends a message and returns how its run failed, how many requests the provider refused or gave no word, how many
// messages the prompt had that was answered, and the marks: of the log, and of what the watchers of the run are told.
func (w *filtered) say(t *testing.T, id core.SessionID, content string, parts ...core.Part) string {
	t.Helper()
	before, code, marks := w.refused.Load(), "ok", ""
	turn := apptest.ReadTurn(t, apptest.Send(t.Context(), w, core.SendMessage{SessionID: id, Content: content, Parts: parts}))
	var report core.ContextReport
	if turn.Run.Error != nil {
		code = turn.Run.Error.Code
	} else {
		must.Do(t, json.Unmarshal(turn.Run.Context, &report))
	}
	for _, m := range apptest.ListMessages(t, w.Client, id) {
		if m.Role == core.RoleUser && m.FinishReason != "" {
			marks += fmt.Sprintf(" %.5s:%s", m.Content, m.FinishReason)
		}
	}
	for _, e := range turn.Events {
		if data, ok := e.Data.(core.MessageData); ok && e.Type == core.EventMessageUpdated {
			marks += fmt.Sprintf(" (%.5s:%s)", data.Message.Content, data.Message.FinishReason)
		}
	}
	return fmt.Sprint(code, " ", w.refused.Load()-before, " ", report.Coverage.Verbatim, marks)
}

// stream sends a message by a chat completion, whose answer ends only after the client has got its first words.
func (w *filtered) stream(t *testing.T, id core.SessionID) {
	w.hold.Lock()
	talk, text := must.Get(json.Marshal(append(apptest.ListMessages(t, w.Client, id), core.Message{Role: core.RoleUser, Content: "Well?"})))(t), ""
	body := strings.NewReader(fmt.Sprintf(`{"model":"plain","stream":true,"metadata":{"session_id":%q},"messages":%s}`, id, talk))
	a := must.Get(http.Post(w.URL+"/v1/chat/completions", "application/json", body))(t)
	for buf := make([]byte, 64<<10); !strings.Contains(text, "answer to: "); {
		text += string(buf[:must.Get(a.Body.Read(buf))(t)])
	}
	w.hold.Unlock()
	if text += string(must.Get(io.ReadAll(a.Body))(t)); a.Body.Close() != nil || strings.Contains(text, "half") || !strings.HasSuffix(text, "[DONE]\n\n") {
		t.Errorf("got the stream %s", text)
	}
}

// A message whose prompt is refused for no clear reason stops no other: later prompts that are refused are sent again
// without it, until it is edited. A prompt that is not refused has it: an outage takes no message out of later prompts, nor
// do an image that is refused or an answer without words. What a filter refused is in no other prompt before it is
// answered; half an answer that it cut off is as an outage.
func TestRefusedMessageStopsNoConversation(t *testing.T) {
	t.Parallel()
	type step struct{ how, content, want string }
	hello := step{"", "Hello, I am Ann.", "ok 0 1"}
	outage := step{"down", "Budget", "model_invalid 1 0 Budge:refused (Budge:refused)"}
	poison := step{"", "POISON", "model_invalid 1 0 POISO:refused (POISO:refused)"}
	for name, steps := range map[string][]step{
		"outage":   {hello, outage, {"", "And now?", "ok 0 4 Budge:refused"}, {"", "Fine?", "ok 0 6 Budge:refused"}},
		"refused":  {hello, poison, {"", "2+2?", "ok 1 3 POISO:refused"}, {"", "3+3?", "ok 1 5 POISO:refused"}, {"stream", "", ""}},
		"image":    {hello, outage, {"image", "See?", "ok 1 4 Budge:refused"}},
		"two":      {hello, outage, {"image", "POISON", "model_invalid 3 0 Budge:refused POISO:refused (POISO:refused)"}, {"", "2+2?", "ok 2 3 Budge:refused POISO:refused"}},
		"no word":  {hello, {"mute 2", "Ada", "model_empty 2 0"}, {"mute 1", "Who?", "ok 1 4"}},
		"filter":   {hello, {"", "SENSITIVE", "model_content_filter 2 0 SENSI:content_filter (SENSI:content_filter)"}, {"", "2+2?", "ok 0 3 SENSI:content_filter"}},
		"cut off":  {hello, {"", "CUT", "ok 1 3 CUT:refused (CUT:refused)"}, {"", "2+2?", "ok 1 3 CUT:refused"}, {"", "CUT 2", "ok 2 5 CUT:refused CUT 2:refused (CUT 2:refused)"}, {"stream", "", ""}},
		"taken":    {{"", "SENSITIVE", "model_content_filter 1 0 SENSI:content_filter (SENSI:content_filter)"}, {"regenerate", "2+2?", "ok 0 3 SENSI:refused"}, {"", "3+3?", "ok 1 3 SENSI:refused"}},
		"answered": {poison, {"regenerate", "2+2?", "ok 0 3 POISO:refused"}, {"", "3+3?", "ok 1 3 POISO:refused"}, {"", "4+4?", "ok 1 5 POISO:refused"}}, // by another model, or luck
		"lucky":    {hello, poison, {"well", "3+3?", "ok 0 4 POISO:refused"}},                                                                            // the next one may be refused again
		"edited":   {poison, {"edit", "2+2?", "ok 0 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFiltered(t, seeing(true))
			id := apptest.NewSession(t, w.Client, ops.NewSession{Agent: "plain"})
			for _, c := range steps {
				w.status.Store(map[string]int64{"down": http.StatusBadRequest}[c.how])
				w.healthy.Store(c.how == "well" || c.how == "regenerate")
				w.silent.Store(map[string]int64{"mute 1": 1, "mute 2": 2}[c.how])
				var parts []core.Part
				switch c.how {
				case "stream":
					w.stream(t, id)
					continue
				case "image":
					parts = []core.Part{upload(t, w.Client, "cat.png", picture(t, 64, 48))}
				case "regenerate":
					must.Get(client.Call(t.Context(), w, ops.RegenerateMessage, core.Regenerate{SessionID: id, MessageID: apptest.ListMessages(t, w.Client, id)[0].ID}))(t)
				case "edit":
					edited := ops.NewMessage{InSession: ops.InSession{SessionID: id}, Content: "harmless", Run: new(false)}
					must.Get(client.Call(t.Context(), w, ops.EditMessage, ops.EditedMessage{NewMessage: edited, MessageID: apptest.ListMessages(t, w.Client, id)[0].ID}))(t)
				}
				compare.Equal(t, c.content, c.want, w.say(t, id, c.content, parts...))
			}
		})
	}
}

// Behind a summary a refused message stops no prompt either, whether it is pinned, a standing instruction, or recalled;
// a summary that its model refuses is made without it, and one that another model made is left out with it. One that an
// outage left unanswered is in the summary, which stays. Half an answer of an import is as one of its own, a step as its question.
func TestRefusedMessageBehindSummary(t *testing.T) {
	t.Parallel()
	const half = `{"role":"user","content":"Read https://POISON.example/1"}` + "\n" + `{"role":"assistant","content":"Lorem POISON","tool_calls":[{"id":"c","name":"read","arguments":"{}"}]}` + "\n" + `{"role":"tool","tool_call_id":"c","content":"The lorem says POISON of ipsum."}` + "\n" + `{"role":"assistant","content":"Lorem ipsum POISON","finish_reason":"content_filter"}`
	for name, c := range map[string]struct {
		message string
		pin     int    // the row from the end; 0 = none
		context string // of the agent
		isIn    bool   // the summary
	}{
		"pinned":      {"Tell me about POISON.", 1, "{}", false},
		"standing":    {"From now on always answer with POISON at the end.", 0, "{}", false},
		"recalled":    {"The lorem manual says POISON about ipsum.", 0, "{recall: auto}", false},
		"extract":     {"Tell me about POISON.", 0, "{strategy: extractive}", false},
		"other model": {"Tell me about POISON.", 0, "{summary_model: other}", true},
		"pinned step": {half, 2, "{strategy: extractive}", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := apptest.NewProvider(t, provider.Options{Summarize: provider.Summary})
			w := newFiltered(t, apptest.WithModel("other", 8_192, 1_024, other), apptest.WithAgent("plain", "name: plain\nmodel: m\ncontext: "+c.context+"\n"))
			id := apptest.NewSession(t, w.Client, ops.NewSession{Agent: "plain"})
			w.status.Store(http.StatusBadRequest)
			w.say(t, id, "The pump is blue.")
			w.status.Store(0)
			w.say(t, id, "hello")
			if _, err := w.ImportMessages(t.Context(), core.ImportMessages{SessionID: id, Body: strings.NewReader(c.message), Format: core.ImportLines}); err != nil { // it is no import
				compare.Equal(t, "the message", "model_invalid", strings.Fields(w.say(t, id, c.message))[0])
			}
			if log := apptest.ListMessages(t, w.Client, id); c.pin > 0 {
				must.Get(client.Call(t.Context(), w.Client, ops.PinMessage, ops.Pinned{InMessage: apptest.InMessage(id, log[len(log)-c.pin].ID), Pinned: new(true)}))(t)
			}
			for i := range 12 {
				apptest.SendMessage(t, w.Client, core.SendMessage{SessionID: id, Content: fmt.Sprintf("message %d", i) + strings.Repeat(fmt.Sprintf(" lorem ipsum %d", i), 150)})
			}
			versions := must.Get(client.Call(t.Context(), w.Client, ops.ListSummaries, ops.SessionPage{InSession: ops.InSession{SessionID: id}}))(t).Items
			first := versions[len(versions)-1].Content
			compare.Equal(t, "whether the first summary has each message", []any{true, c.isIn}, []any{strings.Contains(first, "pump"), strings.Contains(first, "POISON")})
			w.stream(t, id)
			w.say(t, id, "More POISON.") // is not in the summary
			turn := apptest.SendMessage(t, w.Client, core.SendMessage{SessionID: id, Content: "And now?"})
			var last core.ContextReport
			must.Do(t, json.Unmarshal(turn.Run.Context, &last))
			compare.Equal(t, "the window, and whether the prompt has the summary", []any{8_192, !c.isIn}, []any{last.Window, last.Coverage.Summarized > 0})
		})
	}
}
