package eval_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/searchtext"
	"bobbin/app/eval"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// stub is a Bobbin that sends everything and remembers everything.
type stub struct {
	player     *eval.Player
	log        []core.Message
	events     []core.Event
	fail       map[string]*core.RunError // by what is said
	broken     error                     // of Append and Events
	unsettled  error                     // of Settle
	recorded   [][]core.Message          // of SetRecorded
	unrecorded error                     // of SetRecorded
	report     string                    // of a run; empty = an empty one
	unable     bool                      // there is no search
	lazy       bool                      // it asks the model once only
	quotes     map[string][]string       // what search finds
	queries    []string
}

func (s *stub) Send(ctx context.Context, m core.Message) (core.Run, error) {
	s.log = append(s.log, m)
	if e, ok := s.fail[m.Content]; ok {
		return core.Run{Status: core.RunFailed, Error: e}, nil
	}
	for {
		req := llm.Request{System: []string{"<conversation_summary> the blue house"}}
		for _, m := range s.log {
			req.Messages = append(req.Messages, llm.Message{Role: m.Role, Content: m.Content})
		}
		res, err := llm.Collect(s.player.Stream(ctx, req), nil)
		if err != nil {
			return core.Run{}, err
		}
		s.log = append(s.log, core.Message{Role: core.RoleAssistant, Content: res.Text})
		for _, c := range res.ToolCalls {
			s.log = append(s.log, core.Message{Role: core.RoleTool, Content: "result of " + c.ID})
		}
		if len(res.ToolCalls) == 0 || s.lazy {
			break
		}
	}
	if strings.Contains(m.Content, "long") {
		data := core.ContextData{Trigger: "share", TokensBefore: 9, TokensAfter: 4}
		s.events = append(s.events, core.Event{Type: core.EventContextCompleted, Data: data}, core.Event{Type: core.EventRunSucceeded})
	}
	report := s.report
	if report == "" {
		report = `{"rungs":["summarize"]}`
	}
	return core.Run{Status: core.RunSucceeded, Context: json.RawMessage(report)}, nil
}

func (s *stub) SetRecorded(_ context.Context, messages []core.Message) error {
	s.recorded = append(s.recorded, messages)
	return s.unrecorded
}

func (s *stub) Append(_ context.Context, messages []core.Message) error {
	s.log = append(s.log, messages...)
	return s.broken
}

func (s *stub) Settle(context.Context) error {
	if n := len(s.log); n > 0 && strings.Contains(s.log[n-1].Content, "later") {
		data := core.ContextData{Trigger: "messages", TokensBefore: 8, TokensAfter: 5}
		s.events = append(s.events, core.Event{Type: core.EventContextCompleted, Data: data})
	}
	return s.unsettled
}

func (s *stub) Events(context.Context) ([]core.Event, error) {
	events := s.events
	s.events = nil
	return events, s.broken
}

func (s *stub) Report(context.Context) (core.ContextReport, error) {
	return core.ContextReport{Window: 100, Reserve: 20, Usable: 80, Trigger: 70, Landing: 40, Coverage: core.Coverage{Messages: len(s.log)}}, s.broken
}

func (s *stub) Summaries(context.Context) (int, error) { return 3, nil }

func (s *stub) Search(_ context.Context, text string, limit int) ([]string, bool, error) {
	s.queries = append(s.queries, text)
	quotes := s.quotes[text]
	return quotes[:min(limit, len(quotes))], !s.unable, nil
}

// sizes counts letters.
type sizes struct{}

func (sizes) Text(s string) int          { return len(s) }
func (sizes) Message(m core.Message) int { return 4 + len(m.Content) }
func (sizes) Tools([]llm.ToolSpec) int   { return 0 }

// replay replays the messages in the stub.
func replay(t *testing.T, s *stub, facts []eval.Fact, messages ...core.Message) (eval.Result, error) {
	t.Helper()
	s.player = eval.NewPlayer(llm.Info{Name: "m", PriorFactor: 1}, sizes{})
	return eval.Replay(t.Context(), eval.Replayed{
		Policy: "window", Conversation: eval.Split(messages), Facts: facts, Bobbin: s, Player: s.player,
		Summarizer: "scripted", Spent: func() eval.Expense { return eval.Expense{Calls: 2, InputTokens: 7} }, Progress: func(int) {},
	})
}

func TestReplay(t *testing.T) {
	t.Parallel()
	s := &stub{}
	got := must.Get(replay(t, s, nil, says("hello there"), user("1"), says("", call("a", "f")), result("a", "A"), says("one"), says("later"), user("nobody"), user("long"), says("two")))(t)
	if got.Prompts != 3 || len(got.Turns) != 3 || got.Largest != got.Turns[2].Prompts[0].Tokens || got.LargestTurn != 3 || got.Last != got.Largest {
		t.Errorf("got %+v, want three prompts, the last the largest", got)
	}
	compare.Equal(t, "tokens sent: want the sum of the prompts", got.Turns[0].Prompts[0].Tokens+got.Turns[0].Prompts[1].Tokens+got.Turns[2].Prompts[0].Tokens, got.Tokens)
	if first := got.Turns[0].Prompts[0]; first.Everything != first.Tokens {
		t.Errorf("got %+v, want that the first prompt is everything", first)
	}
	if len(s.recorded) != 2 || len(s.recorded[0]) != 4 || s.recorded[0][3].Content != "one" || len(s.recorded[1]) != 2 {
		t.Errorf("got %+v, want the authors and times of what each run said", s.recorded)
	}
	compactions := []eval.Compaction{{Event: "context.completed", ContextData: core.ContextData{Trigger: "share", TokensBefore: 9, TokensAfter: 4}}}
	compare.Equal(t, "compactions", compactions, got.Turns[2].Compactions)
	compactions = []eval.Compaction{{Event: "context.completed", After: true, ContextData: core.ContextData{Trigger: "messages", TokensBefore: 8, TokensAfter: 5}}}
	compare.Equal(t, "compactions after a turn", compactions, got.Turns[0].Compactions)
	if got.Summaries != 3 || got.Summarizer != (eval.Summarizer{Name: "scripted", Expense: eval.Expense{Calls: 2, InputTokens: 7}}) || got.Budget != (eval.Budget{Window: 100, Reserve: 20, Usable: 80, Trigger: 70, Landing: 40}) {
		t.Errorf("got %+v, want what the Bobbin says", got)
	}
	if n := len(s.log); n != 9 || got.Coverage.Messages != n {
		t.Errorf("got %d messages in the log, %d covered, want 9", n, got.Coverage.Messages)
	}
}

// A run that fails ends the conversation; what was measured stays.
func TestReplayFails(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]*core.RunError{"told": {Code: "context_floor", Message: "too large"}, "canceled": nil} {
		s := &stub{fail: map[string]*core.RunError{"2": e}}
		got, err := replay(t, s, nil, user("1"), says("one"), user("2"), says("two"), user("3"), says("three"))
		if err != nil || got.Failed == nil || got.Failed.Turn != 2 || got.Failed.Code == "" || got.Failed.Message == "" || got.Prompts != 1 || len(got.Turns) != 2 {
			t.Errorf("%s: got %+v, %v, want a failure in turn 2", name, got, err)
		}
	}
}

func TestReplayErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk full")
	tests := []struct {
		name     string
		stub     *stub
		messages []core.Message
		want     string
	}{
		{"opening", &stub{broken: broken}, []core.Message{says("hello"), user("1")}, "disk full"},
		{"unanswered", &stub{broken: broken}, []core.Message{user("1")}, "turn 1: disk full"},
		{"events", &stub{broken: broken}, []core.Message{user("1"), says("one")}, "turn 1: disk full"},
		{"between turns", &stub{unsettled: broken}, []core.Message{user("1"), says("one")}, "turn 1: between two turns: disk full"},
		{"between questions", &stub{unsettled: broken}, []core.Message{user("1"), user("2")}, "turn 1: between two turns: disk full"},
		{"rest", &stub{broken: broken}, []core.Message{user("1"), says("one"), says("rest")}, "turn 1: disk full"},
		{"report of the run", &stub{report: "{"}, []core.Message{user("1"), says("one")}, "turn 1: context report of the run"},
		{"authors and times", &stub{unrecorded: broken}, []core.Message{user("1"), says("one")}, "turn 1: authors and times: disk full"},
		{"answers left", &stub{lazy: true}, []core.Message{user("1"), says("", call("a", "f")), says("one")}, "turn 1: 1 recorded answers were not asked for"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := replay(t, tt.stub, nil, tt.messages...); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// Every fact of a sample has a question that nobody could answer with the fact's own
// words: none of them is in it, and at most half of its words are in the message.
func TestQuestionsAreInOtherWords(t *testing.T) {
	t.Parallel()
	for _, s := range eval.List() {
		_, raw, err := eval.Get(s.Name)
		must.Do(t, err)
		asked := map[string]string{}
		for line := range bytes.Lines(raw) {
			var m struct {
				Content   string `json:"content"`
				ToolCalls []struct {
					Arguments string `json:"arguments"`
				} `json:"tool_calls"`
				Metadata struct {
					Facts []struct{ Text, Ask string }
				}
			}
			must.Do(t, json.Unmarshal(line, &m))
			for _, c := range m.ToolCalls {
				m.Content += " " + c.Arguments
			}
			said := words(m.Content)
			for _, f := range m.Metadata.Facts {
				ask, fact, shared := words(f.Ask), words(f.Text), 0
				for w := range ask {
					if fact[w] {
						t.Errorf("%s: the question %q has %q of its fact %q", s.Name, f.Ask, w, f.Text)
					}
					if said[w] {
						shared++
					}
				}
				if len(ask) == 0 || 2*shared > len(ask) {
					t.Errorf("%s: the question %q shares %d of its %d words with the message that says %q; want other words", s.Name, f.Ask, shared, len(ask), f.Text)
				}
				if other, ok := asked[f.Ask]; ok && other != f.Text {
					t.Errorf("%s: the question %q has two answers, %q and %q", s.Name, f.Ask, other, f.Text)
				}
				asked[f.Ask] = f.Text
			}
		}
		if len(asked) < 15 {
			t.Errorf("%s: got %d questions, want more", s.Name, len(asked))
		}
	}
}

// words returns the words of a text that are longer than the commonest of English.
func words(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range searchtext.Text(text).Words {
		if len(w) > 3 {
			out[w] = true
		}
	}
	return out
}

func TestGet(t *testing.T) {
	t.Parallel()
	for _, s := range eval.List() {
		got, raw, err := eval.Get(s.Name)
		if err != nil || got != s || !bytes.HasPrefix(raw, []byte(`{"role":"system"`)) || s.About == "" || s.Window < 8_192 {
			t.Errorf("sample %s: got %+v, %d bytes, %v, want a conversation", s.Name, got, len(raw), err)
		}
		if !bytes.Contains(raw, []byte(`"facts"`)) || bytes.ContainsAny(raw, "⟦⟧") || bytes.Contains(raw, []byte("%!")) {
			t.Errorf("sample %s: want planted facts, and no marks of the generator", s.Name)
		}
	}
	if _, _, err := eval.Get("../secret"); !errors.Is(err, core.ErrNotFound) || !strings.Contains(err.Error(), "chat, coding, cjk, incident") {
		t.Errorf("got %v, want an error that names the samples", err)
	}
}
