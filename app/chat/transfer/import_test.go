package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/chat/transfer"
	"bobbin/app/core"
	"bobbin/app/core/quota"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

func asError(err error, into **core.Error) bool { return errors.As(err, into) }

const two = `{"role":"user","content":"one two"}` + "\n" + `{"role":"assistant","content":"three"}`

func TestImportOfBrokenJSON(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		`7`:                               "neither a list of messages nor an export",
		`-1e400`:                          "neither a list of messages nor an export",
		`{"messages":1e400}`:              "messages must be a list",
		`{"session":{}}`:                  "neither a list of messages nor an export",
		`[{"role":"user","content":"x"}`:  "is not JSON: at byte",
		`[{"role":"user" "content":"x"}]`: "in or after message 1",
		`{"messages":7}`:                  "messages must be a list",
		`{"messages":[],"messages":[]}`:   "only one",
		`[] []`:                           "something stands behind",
		two:                               "application/jsonl",
		`[7]`:                             "message 1 is not a JSON object",
		`nonsense`:                        "is not JSON",
	} {
		w := newWorld()
		_, err := w.take(t, core.ImportJSON, text)
		wantFault(t, w, err, says)
	}
}

// Questions and answers without any content, as one that was stopped before its first word,
// are passed over and counted; the rest of the history comes in.
func TestImportSkipsEmptyMessages(t *testing.T) {
	t.Parallel()
	w := newWorld()
	got, err := w.take(t, core.ImportLines, strings.Join([]string{
		`{"role":"user","content":"q"}`, `{"role":"assistant","content":null}`,
		`{"role":"assistant","content":"","tool_calls":[{"id":"c1","name":"clock"}]}`, `{"role":"assistant","content":" \n"}`,
		`{"role":"tool","content":"","tool_call_id":"c1"}`, `{"role":"user","content":" "}`, `{"role":"user"}`, `{"role":"assistant","content":"a"}`,
	}, "\n"))
	compare.True(t, err == nil && got.Imported == 4 && got.Skipped == 4 && len(w.log) == 4, "got %+v, %d messages in the log, %v; want 4 imported and 4 skipped", got, len(w.log), err)
}

// Thoughts that a model wrote at the beginning of its text are no text of the answer, wherever it comes
// from: the log keeps them, and no prompt has them. What a user writes is as it is.
func TestThoughtsComeInAsReasoning(t *testing.T) {
	t.Parallel()
	w := newWorld()
	const thought = `<think>Hm.</think>`
	got := must.Get(w.take(t, core.ImportLines, `{"role":"user","content":"`+thought+`q"}`+"\n"+`{"role":"assistant","content":"`+thought+`a"}`+"\n"+`{"role":"assistant","content":"<think>\n</think>"}`))(t)
	compare.Equal(t, "skipped: an empty thought alone", 1, got.Skipped)
	s := w.service(transfer.Limits{Message: 1_000, Output: 1_000})
	must.Get2(s.Append(t.Context(), ann(), w.session.ID, core.Message{Role: core.RoleAssistant, Content: thought + "b"}))(t)
	must.Get(s.AppendHistory(t.Context(), ann(), core.AppendMessages{SessionID: w.session.ID}, slices.Values([]core.Message{{Role: core.RoleAssistant, Content: thought + "c", Source: core.SourceAPI}})))
	must.Get2(s.Append(t.Context(), ann(), w.session.ID, core.Message{Role: core.RoleAssistant, Content: "<think>\n\n</think>\n\nd"}))(t)
	for i, want := range []string{thought + "q", "a", "b", "c", "d"} {
		compare.Equal(t, fmt.Sprintf("message %d", i), want, w.log[i].Content)
		if i == 4 {
			compare.Equal(t, "parts of an empty thought", 0, len(w.log[i].Parts))
			break
		}
		if parts := w.log[i].Parts; i > 0 && (len(parts) != 1 || parts[0] != core.Part{Type: core.PartReasoning, Text: "Hm."}) {
			t.Errorf("message %d: got the parts %+v, want the thought", i, parts)
		}
	}
}

// Data in a text that comes in, whoever said it, is kept in the log and described in prompts.
func TestDataComesInDescribed(t *testing.T) {
	t.Parallel()
	w := newWorld()
	data := "see data:image/png;base64," + strings.Repeat("iVBORw0KGgo/", 100) + " here"
	must.Get(w.take(t, core.ImportLines, fmt.Sprintf(`{"role":"user","content":%q,"metadata":{"a":1}}
{"role":"assistant","tool_calls":[{"id":"c","name":"f","arguments":"{}"}]}
{"role":"tool","tool_call_id":"c","content":%q}`, data, data)))(t)
	s := w.service(transfer.Limits{})
	must.Get2(s.Append(t.Context(), ann(), w.session.ID, core.Message{Content: data}))(t)
	must.Get(s.AppendHistory(t.Context(), ann(), core.AppendMessages{SessionID: w.session.ID}, slices.Values([]core.Message{{Role: core.RoleUser, Content: data, Source: core.SourceAPI}})))
	for i, m := range w.log {
		if i != 1 && (m.Content != data || m.Shown(true) != "see [image/png, 900 bytes] here" || m.TokenCount > 10) {
			t.Errorf("message %d: got %q, shown as %q with %d tokens", i, m.Content, m.Shown(true), m.TokenCount)
		}
	}
	compare.Contains(t, "metadata", `"a":1`, string(w.log[0].Metadata))
}

// All faults are named, up to 20; what hangs on a broken line is not blamed.
func TestImportNamesTheFaults(t *testing.T) {
	t.Parallel()
	w := newWorld()
	_, err := w.take(t, core.ImportLines, strings.Join([]string{
		`{"role":"user","content":"q"}`, `{broken`, `{"role":"tool","content":"x","tool_call_id":"c1"}`, `{"role":"robot","content":"x"}`,
	}, "\n"))
	wantFault(t, w, err, "nothing was imported: line 2 is not a JSON object; line 4 role")
	var shown *core.Error
	compare.True(t, !asError(err, &shown) || len(shown.Fields) == 2, "got faults %+v, want two", shown.Fields)
	_, err = w.take(t, core.ImportLines, `{"role":"user","content":"q","feedback":{"rating":"five stars"}}`)
	wantFault(t, w, err, "line 1 feedback.rating must be up or down")
	_, err = w.take(t, core.ImportLines, strings.Repeat("x\n", 1000))
	wantFault(t, w, err, "(the first 20 faults are named)")
	compare.True(t, !asError(err, &shown) || len(shown.Fields) == 20, "got %d faults, want 20", len(shown.Fields))
}

// The results in a message of Anthropic's stand before its text, each as a tool's message.
func TestImportResultBlocks(t *testing.T) {
	t.Parallel()
	w := newWorld()
	got := must.Get(w.take(t, core.ImportLines, `{"role":"user","content":"q"}`+"\n"+
		`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"x","input":{}},{"type":"tool_use","id":"b","name":"y","input":{}}]}`+"\n"+
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"B","is_error":true},{"type":"text","text":"go on"},{"type":"tool_result","tool_use_id":"a","content":[{"type":"image"}]}]}`))(t)
	var log []string
	for _, m := range w.log[2:] {
		log = append(log, fmt.Sprint(m.Role, " ", m.ToolName, " ", m.Status, " ", m.Content))
	}
	compare.Equal(t, "the log", []string{"tool y failed B", "tool x complete [image: not imported]", "user  complete go on"}, log)
	compare.True(t, got.Imported == 5 && got.LeftOut == 1 && got.Skipped == 0, "got %+v, want 5 messages, 1 piece left out", got)
}

// Messages of other branches and deleted ones do not come in with an export.
func TestImportSkips(t *testing.T) {
	t.Parallel()
	w := newWorld()
	got, err := w.take(t, core.ImportLines, two+"\n"+`{"role":"tool","content":"x","on_path":false,"tool_call_id":"c"}`+"\n"+
		`{"role":"user","content":"","deleted_at":"2026-01-01T00:00:00Z"}`+"\n"+`{"role":"user","content":[{"type":"input_audio"}]}`)
	want := core.Imported{Imported: 3, FirstSeq: 1, LastSeq: 3, Tokens: 6, Skipped: 2, LeftOut: 1}
	compare.True(t, err == nil && got == want, "got %+v, %v, want %+v", got, err, want)
}

// What no database takes becomes U+FFFD in texts, and is counted.
func TestImportCleans(t *testing.T) {
	t.Parallel()
	w := newWorld()
	must.Get(w.take(t, core.ImportLines, `{"role":"user","content":"a\u0000b\ud800","metadata":{"k\u0000":["\u0000",1.50]}}`))(t)
	m := w.log[0]
	compare.Equal(t, "with, want replaced characters, counted", []any{"a\uFFFDb\uFFFD", `{"k` + "\uFFFD" + `":["` + "\uFFFD" + `",1.50],"replaced_characters":1}`}, []any{m.Content, string(m.Metadata)})
}

func TestImportLimits(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		limits transfer.Limits
		format core.ImportFormat
		text   string
		says   string
	}{
		{"bytes", transfer.Limits{Import: int64(len(two)) - 1}, core.ImportLines, two, "is larger than"},
		{"bytes of a list", transfer.Limits{Import: 30}, core.ImportJSON, "[" + strings.ReplaceAll(two, "\n", ",") + "]", "is larger than 30 bytes"},
		{"messages", transfer.Limits{Messages: 1}, core.ImportLines, two, "more than 1 messages"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			_, err := w.service(tt.limits).Import(t.Context(), ann(), core.ImportMessages{SessionID: w.session.ID, Body: strings.NewReader(tt.text), Format: tt.format})
			compare.True(t, errors.Is(err, core.ErrTooLarge) && strings.Contains(err.Error(), tt.says) && len(w.log) == 0, "got %v and %d messages, want %q and none", err, len(w.log), tt.says)
		})
	}
}

// What is too long or too deep is never in memory as a whole, whatever it is.
// A history counts as it is stored: many short messages take more than their bytes.
func TestImportCountsWhatIsStored(t *testing.T) {
	t.Parallel()
	for room, want := range map[int64]error{2*512 + 12: nil, 2*512 + 11: core.ErrTooLarge} {
		w := newWorld()
		s := w.service(transfer.Limits{})
		s.Stored = quota.NewStored(quota.StoredLimits{Owner: room, Sum: func(context.Context, core.Tenant) (int64, error) { return 0, nil }})
		_, err := s.Import(t.Context(), ann(), core.ImportMessages{SessionID: w.session.ID, Body: strings.NewReader(two), Format: core.ImportLines})
		compare.True(t, errors.Is(err, want) && (len(w.log) == 0) == (want != nil), "room for %d bytes: got %v and %d messages, want %v", room, err, len(w.log), want)
	}
}

func TestImportOfLongValues(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	message := `{"role":"user","content":"one two"}`
	for name, tt := range map[string]struct{ text, says string }{
		"a message":           {`[` + message + `,{"role":"user","content":"` + long + `"},` + message + `]`, "message 2 is longer than 1024 bytes"},
		"a little too long":   {`[{"role":"user","content":"` + long[:1024] + `"}]`, "message 1 is longer than 1024 bytes"},
		"a member":            {`{"note":"` + long + `","messages":[` + message + `]}`, "a value of the history, in or after message 0, is longer than 1024 bytes"},
		"a deep member":       {`{"note":` + strings.Repeat("[", 1<<20), "the history is nested more than 64 levels deep"},
		"a member behind":     {`{"messages":[` + message + `],"note":"` + long + `"}`, "a value of the history, in or after message 1, is longer"},
		"a list in a message": {`[{"role":"user","content":[` + strings.Repeat(`{},`, 1<<20), "message 1 is longer than 1024 bytes"},
	} {
		w := newWorld()
		_, err := w.service(transfer.Limits{Line: 1024}).Import(t.Context(), ann(), core.ImportMessages{SessionID: w.session.ID, Body: strings.NewReader(tt.text), Format: core.ImportJSON})
		compare.True(t, errors.Is(err, core.ErrInvalid) && strings.Contains(err.Error(), tt.says) && len(w.log) == 0, "%s: got %v and %d messages, want %q and none", name, err, len(w.log), tt.says)
	}
	w := newWorld()
	many := strings.Repeat(`{"id":"`+long[:1000]+`"},`, 1000)
	text := `{"summaries":[` + many + `{}],"messages":[` + message + strings.Repeat(" ", 1000) + `],"more":{"a":[1,"b",null,true,{}]}}`
	got := must.Get(w.service(transfer.Limits{Line: 1024}).Import(t.Context(), ann(), core.ImportMessages{SessionID: w.session.ID, Body: strings.NewReader(text), Format: core.ImportJSON}))(t)
	compare.True(t, got.Imported == 1, "got %+v for an export with long lists of short values, want 1 message", got)
}

// reading is a reader that calls a function first.
type reading func() error

func (r reading) Read([]byte) (int, error) { return 0, r() }

func TestImportErrors(t *testing.T) {
	t.Parallel()
	w := newWorld()
	broken := errors.New("the connection broke")
	at := func(ctx context.Context, s *transfer.Service, id core.SessionID, body io.Reader) error {
		_, err := s.Import(ctx, ann(), core.ImportMessages{SessionID: id, Body: body, Format: core.ImportLines})
		return err
	}
	s := w.service(transfer.Limits{})
	compare.Error(t, "for another's session", core.ErrNotFound, at(t.Context(), s, "other", strings.NewReader(two)))
	compare.Error(t, "err: want what the body's reader says", broken, at(t.Context(), s, w.session.ID, reading(func() error { return broken })))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	compare.Error(t, "after the caller left: want that", context.Canceled, at(ctx, s, w.session.ID, strings.NewReader(two)))
	w.fail = core.Errorf(core.ErrConflict, "busy")
	if err := at(t.Context(), s, w.session.ID, strings.NewReader(two)); !errors.Is(err, core.ErrConflict) || len(w.told) > 0 {
		t.Errorf("got %v, want storage's word and no events", err)
	}
	w.session.Importing = true
	unread := reading(func() error {
		t.Error("the body is read")
		return io.EOF
	})
	if err := at(t.Context(), s, w.session.ID, unread); !core.IsSessionBusy(err) {
		t.Errorf("got %v while another import is under way, want that the session is busy", err)
	}
	w.session.Importing, w.session.ArchivedAt = false, new(core.Now())
	if err := at(t.Context(), s, w.session.ID, strings.NewReader(two)); !errors.Is(err, core.ErrConflict) || !strings.Contains(err.Error(), "archived") {
		t.Errorf("got %v, want that it is archived", err)
	}
}

// The imports of one owner come one after the other, and leave places for those of others.
func TestImportPlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s := w.service(transfer.Limits{})
		owned := func(owner string, body io.Reader) error {
			_, err := s.Import(t.Context(), core.Tenant{Owner: owner}, core.ImportMessages{SessionID: w.session.ID, Body: body, Size: 1, Format: core.ImportLines})
			return err
		}
		end := make(chan struct{})
		slow := reading(func() error { <-end; return io.EOF })
		ended := make(chan error)
		begin := time.Now()
		go func() { ended <- owned("ann", slow) }()
		synctest.Wait()
		err := owned("ann", strings.NewReader(two))
		compare.Equal(t, "the second of an owner: refused after 10 s", []any{true, 10 * time.Second}, []any{errors.Is(err, core.ErrRateLimited), time.Since(begin)})
		if err := owned("bob", strings.NewReader(two)); err != nil || time.Since(begin) != 10*time.Second {
			t.Errorf("got %v after %v for another owner, want that it comes in without a wait", err, time.Since(begin)-10*time.Second)
		}
		for _, owner := range []string{"bob", "carl", "dan"} {
			go func() { ended <- owned(owner, slow) }()
		}
		synctest.Wait()
		compare.Error(t, "when all places are taken", core.ErrUnavailable, owned("eve", strings.NewReader(two)))
		go func() { ended <- owned("ann", strings.NewReader(two)) }()
		synctest.Wait()
		close(end)
		for range 5 {
			compare.Error(t, "for one that waited", nil, <-ended)
		}
	})
}

func TestAppend(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(transfer.Limits{Message: 10, Output: 20})
	m, repeated, err := s.Append(t.Context(), ann(), w.session.ID, core.Message{Content: "hello you"})
	if err != nil || repeated || m.Role != core.RoleUser || m.TokenCount != 2 || m.Source != core.SourceAPI || len(w.told) != 1 {
		t.Errorf("got %+v, %t, %v, want a user's message, counted and told", m, repeated, err)
	}
	for _, tt := range []struct {
		m    core.Message
		kind error
		says string
	}{
		{core.Message{Content: strings.Repeat("x", 11)}, core.ErrTooLarge, "has 11 bytes, at most 10"},
		{core.Message{Role: core.RoleTool, Content: strings.Repeat("x", 21), ToolCallID: "c"}, core.ErrTooLarge, "at most 20"},
		{core.Message{Role: core.RoleTool, Content: "x"}, core.ErrInvalid, "tool_call_id is missing"},
		{core.Message{}, core.ErrInvalid, "content is empty"},
	} {
		if _, _, err := s.Append(t.Context(), ann(), w.session.ID, tt.m); !errors.Is(err, tt.kind) || !strings.Contains(fmt.Sprint(err), tt.says) {
			t.Errorf("got %v, want %q", err, tt.says)
		}
	}
	w.fail = core.Errorf(core.ErrConflict, "busy")
	if _, _, err := s.Append(t.Context(), ann(), w.session.ID, core.Message{Content: "x"}); !errors.Is(err, core.ErrConflict) {
		t.Errorf("got %v, want storage's word", err)
	}
	compare.Equal(t, "messages", 1, len(w.log))
}

// A tool's result that came from elsewhere is stored whole, and shown as those of runs are.
func TestLargeResults(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service(transfer.Limits{Shown: 90})
	large := strings.Repeat("word ", 100)
	for _, role := range []core.Role{core.RoleTool, core.RoleAssistant} {
		m := core.Message{Role: role, Content: large}
		if role == core.RoleTool {
			m.ToolCallID = "c"
		}
		m, _, err := s.Append(t.Context(), ann(), w.session.ID, m)
		if got := len(m.Shown(true)) < len(large); err != nil || m.Content != large || got != (role == core.RoleTool) {
			t.Errorf("%s: got %v, the message %+v", role, err, m)
		}
	}
	body := before + `{"role":"tool","tool_call_id":"c1","content":"` + large + `","metadata":{"own":1}}`
	must.Get(s.Import(t.Context(), ann(), core.ImportMessages{SessionID: w.session.ID, Body: strings.NewReader(body), Format: core.ImportLines}))(t)
	compare.Equal(t, "imported", `{"excerpt":{"head":60,"tail":30},"own":1}`, string(w.log[len(w.log)-1].Metadata))
}

// Nothing that anybody sends makes it panic, and what it takes it exports and
// takes again.
func FuzzImport(f *testing.F) {
	f.Add(two, true)
	f.Add(before+`{"role":"tool","tool_call_id":"c1","content":"391"}`, true)
	f.Add(`{"lc":1,"type":"constructor","id":["AIMessage"],"kwargs":{"content":[{"type":"thinking"}]}}`, true)
	f.Add(`{"messages":[{"type":"ai","data":{"content":"x","tool_calls":[{}]}}]}`, false)
	f.Add(`[{"role":"user","content":"x","metadata":{"a":"\u0000"},"parts":[{"type":"file"}]}]`, false)
	f.Fuzz(func(t *testing.T, text string, lines bool) {
		w, format := newWorld(), core.ImportJSON
		if lines {
			format = core.ImportLines
		}
		first, err := w.take(t, format, text)
		if err != nil {
			return
		}
		copied := newWorld()
		again, err := copied.take(t, core.ImportLines, w.export(t, core.ExportLines))
		must.True(t, err == nil && again.Imported == first.Imported, "got %+v, %v from the export of %+v", again, err, first)
		if diff := cmp.Diff(w.log, copied.log, unstored()); diff != "" {
			t.Fatalf("round trip (-first +again):\n%s", diff)
		}
		w.export(t, core.ExportMarkdown)
	})
}
