package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

// script is a run as its events tell it.
type script struct {
	live   []core.Event // as a watcher gets them while it runs
	stored []core.Event // as they are replayed: text comes with its message
	text   string       // of the answer
	calls  string       // arguments of the client's tools with which it ends
}

// drawScript draws a run: messages in pieces, some of them discarded, the last one the answer.
func drawScript(t *rapid.T) script {
	var s script
	texts := rapid.SliceOfN(rapid.StringOf(rapid.SampledFrom([]rune("ab \n\"\\<é漢😀"))), 1, 4).Draw(t, "texts")
	for i, text := range texts {
		id := core.MessageID(fmt.Sprintf("0192f0c4-0000-7000-8000-%012d", i))
		for at := 0; at < len(text); {
			end := at + 1
			for end < len(text) && (!isBoundary(text, end) || rapid.Bool().Draw(t, "longer")) {
				end++
			}
			s.live = append(s.live, core.Event{Type: core.EventMessageDelta, Data: core.DeltaData{MessageID: id, Offset: at, Text: text[at:end]}})
			at = end
		}
		m := core.Message{ID: id, Role: core.RoleAssistant, Content: text, FinishReason: core.FinishStop}
		if i == len(texts)-1 {
			m.ToolCalls = s.drawCalls(t, id)
		}
		end := core.Event{Type: core.EventMessageCreated, Data: core.MessageData{Message: m}}
		if i < len(texts)-1 && rapid.Bool().Draw(t, "discarded") {
			end = core.Event{Type: core.EventMessageDiscarded, Data: core.DiscardedData{MessageID: id}}
			s.stored = append(s.stored, end)
			late := core.Event{Type: core.EventMessageDelta, Data: core.DeltaData{MessageID: id, Text: text}}
			s.live = append(s.live, rapid.SampledFrom([][]core.Event{{end}, {end, late}, {late}}).Draw(t, "how it is discarded")...)
			continue
		}
		s.text += text
		s.live, s.stored = append(s.live, end), append(s.stored, end)
		for _, c := range m.ToolCalls {
			asked := core.Event{Type: core.EventApprovalRequested, Data: core.ApprovalData{Approval: core.Approval{
				ID: core.ApprovalID(c.ID), Kind: core.KindClientTool, ToolCallID: c.ID, Tool: c.Name, Arguments: c.Arguments,
			}}}
			s.live, s.stored = append(s.live, asked), append(s.stored, asked)
		}
	}
	done := core.Event{Type: core.EventRunSucceeded, Data: core.RunData{Run: weatherRun()}}
	if s.calls != "" {
		done = core.Event{Type: core.EventRunWaiting, Data: core.RunData{Run: core.Run{ID: weatherRun().ID, Status: core.RunWaiting}}}
	}
	s.live, s.stored = append(s.live, done), append(s.stored, done)
	return s
}

// weatherRun is a run whose client has a tool.
func weatherRun() core.Run {
	return core.Run{ID: "0192f0c4-0000-7000-8000-000000000001", Options: &core.RunOptions{Tools: []core.ClientTool{{Name: "weather"}}}}
}

// piece is a piece of the arguments of a call.
func piece(id core.MessageID, call string, offset int, text string) core.Event {
	return core.Event{Type: core.EventArgumentsDelta, RunID: weatherRun().ID, Data: core.DeltaData{MessageID: id, Offset: offset, Text: text, DeltaCall: &core.DeltaCall{ToolCallID: call, Name: "weather"}}}
}

// drawCalls draws calls whose arguments come in pieces, or whole at the end from some place on.
func (s *script) drawCalls(t *rapid.T, id core.MessageID) (calls []core.ToolCall) {
	for i, text := range rapid.SliceOfN(rapid.StringOfN(rapid.SampledFrom([]rune("ab\"\\<é漢😀")), 1, -1, -1), 0, 3).Draw(t, "arguments") {
		c := core.ToolCall{ID: fmt.Sprintf("c%d", i), Name: "weather", Arguments: text}
		calls, s.calls = append(calls, c), s.calls+callID(weatherRun().ID, c.ID)+" weather "+text+"\n"
		for at := 0; at < len(text); {
			end := at + 1
			for end < len(text) && (!isBoundary(text, end) || rapid.Bool().Draw(t, "longer")) {
				end++
			}
			s.live = append(s.live, piece(id, c.ID, at, text[at:end]))
			at = end
		}
	}
	for n := rapid.IntRange(0, len(s.live)).Draw(t, "pieces that are lost"); n > 0 && s.live[len(s.live)-1].Type == core.EventArgumentsDelta; n-- {
		s.live = s.live[:len(s.live)-1]
	}
	return calls
}

// isBoundary reports whether a character begins at the offset.
func isBoundary(text string, at int) bool { return text[at]&0xC0 != 0x80 }

// received is what a client has got of a response.
type received struct {
	texts  map[int]string // by output_index, also of arguments
	last   int64          // sequence number
	output string         // of the last event
	calls  string         // likewise
	ended  bool
}

// read reads frames up to a number of them.
func (r *received) read(t *rapid.T, frames []byte, most int) {
	lines := bufio.NewScanner(bytes.NewReader(frames))
	lines.Buffer(nil, 1<<20)
	for most > 0 && lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		most--
		var e struct {
			Type     string `json:"type"`
			Number   int64  `json:"sequence_number"`
			Index    int    `json:"output_index"`
			Delta    string `json:"delta"`
			Text     string `json:"text"`
			Args     string `json:"arguments"`
			Response struct {
				Output []outputItem `json:"output"`
			} `json:"response"`
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		if e.Number <= r.last {
			t.Fatalf("number %d comes after %d", e.Number, r.last)
		}
		r.last = e.Number
		switch e.Type {
		case "response.output_text.delta", "response.function_call_arguments.delta":
			r.texts[e.Index] += e.Delta
		case "response.output_text.done":
			if e.Text != "" && r.texts[e.Index] != e.Text {
				t.Fatalf("item %d: the pieces are %q, the text is %q", e.Index, r.texts[e.Index], e.Text)
			}
		case "response.function_call_arguments.done":
			if r.texts[e.Index] != e.Args {
				t.Fatalf("item %d: the pieces are %q, the arguments are %q", e.Index, r.texts[e.Index], e.Args)
			}
		case "response.completed":
			r.ended = true
			for _, item := range e.Response.Output {
				if item.Type == "function_call" {
					r.calls += item.CallID + " " + item.Name + " " + *item.Arguments + "\n"
				}
				for _, part := range item.Content {
					r.output += part.Text
				}
			}
		}
	}
}

// frames returns what the encoder writes.
func frames(t *rapid.T, events []core.Event, after int64) []byte {
	enc := newResponseEncoder(newResponseShape(activeRun{run: weatherRun()}, nil), weatherRun(), after)
	var all []byte
	for _, e := range events {
		var err error
		if all, err = enc.encode(all, e); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// A client that comes back after any event gets exactly the rest, whether the text is still live
// or comes from the log.
func TestResponseResumes(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(t *rapid.T) {
		s := drawScript(t)
		r := received{texts: map[int]string{}, last: -1}
		whole := frames(t, s.live, -1)
		r.read(t, whole, rapid.IntRange(0, bytes.Count(whole, []byte("data: "))).Draw(t, "cut"))
		if !r.ended {
			rest := s.stored
			if rapid.Bool().Draw(t, "still live") {
				rest = s.live
			}
			r.read(t, frames(t, rest, r.last), 1<<30)
		}
		if !r.ended || r.output != s.text || r.calls != s.calls {
			t.Fatalf("got %q %q, ended %v, want %q %q", r.output, r.calls, r.ended, s.text, s.calls)
		}
	})
}

// A thought that was recognized by its end has been sent as text: the events that end the item, and the
// response, have the answer alone.
func TestResponseWithoutThoughts(t *testing.T) {
	t.Parallel()
	const id = core.MessageID("0192f0c4-0000-7000-8000-000000000002")
	enc := newResponseEncoder(newResponseShape(activeRun{run: weatherRun()}, nil), weatherRun(), -1)
	var out []byte
	for _, e := range []core.Event{
		{Type: core.EventMessageDelta, Data: core.DeltaData{MessageID: id, Text: "They greet me.</think>Hello!"}},
		{Type: core.EventMessageCreated, Data: core.MessageData{Message: core.Message{ID: id, Role: core.RoleAssistant, Content: "Hello!", FinishReason: core.FinishStop}}},
		{Type: core.EventRunSucceeded, Data: core.RunData{Run: weatherRun()}},
	} {
		out = must.Get(enc.encode(out, e))(t)
	}
	_, done, _ := strings.Cut(string(out), "event: response.output_text.done")
	if got := enc.shape.Output[0].Content[0].Text; got != "Hello!" || done == "" || strings.Contains(done, "greet me") {
		t.Errorf("got the text %q and the end %s", got, done)
	}
}

// The chunks of a chat completion joined are the texts of the run's messages. A text that is
// discarded after a part of it was sent is an error, unless the encoder holds pieces back.
func TestChunksAreTheText(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(t *rapid.T) {
		s := drawScript(t)
		enc, out, failed := newChunkEncoder(weatherRun(), completionRequest{Model: "assistant"}, 1), []byte{}, error(nil)
		enc.answer.holds = rapid.Bool().Draw(t, "holds")
		for _, e := range s.live {
			if out, failed = enc.encode(out, e); failed != nil {
				break
			}
		}
		var text, calls string
		for line := range strings.SplitSeq(string(out), "\n") {
			var chunk struct {
				Choices []struct {
					Delta struct {
						Content string      `json:"content"`
						Calls   []callDelta `json:"tool_calls"`
					} `json:"delta"`
				} `json:"choices"`
			}
			data, ok := strings.CutPrefix(line, "data: ")
			if !ok || data == "[DONE]" {
				continue
			}
			if err := json.Unmarshal([]byte(data), &chunk); err != nil {
				t.Fatalf("%v: %s", err, data)
			}
			text += chunk.Choices[0].Delta.Content
			for _, c := range chunk.Choices[0].Delta.Calls {
				if n := strings.Count(calls, "\n"); c.ID != "" && c.Index == n {
					calls += "\n" + c.ID + " " + c.Function.Name + " "
				} else if c.ID != "" || c.Index != n-1 {
					t.Fatalf("got %+v after %q", c, calls)
				}
				calls += c.Function.Arguments
			}
		}
		if calls = strings.TrimPrefix(calls+"\n", "\n"); failed == nil && calls != s.calls {
			t.Fatalf("got the calls %q, want %q", calls, s.calls)
		}
		if failed == nil && strings.ReplaceAll(text, textSeparator, "") != strings.ReplaceAll(s.text, textSeparator, "") {
			t.Fatalf("got %q, want %q", text, s.text)
		}
		if failed == nil != strings.HasSuffix(string(out), "data: [DONE]\n\n") || failed != nil && enc.answer.holds {
			t.Fatalf("error %v, and the stream ends with %q", failed, out[max(0, len(out)-40):])
		}
	})
}

// A call that breaks off after the client has got a part of it is an error of a completion; its item of
// a response ends incomplete.
func TestBrokenCall(t *testing.T) {
	t.Parallel()
	const lost, next = "0192f0c4-0000-7000-8000-000000000002", "0192f0c4-0000-7000-8000-000000000003"
	run := weatherRun()
	said := core.Event{Type: core.EventMessageCreated, Data: core.MessageData{Message: core.Message{ID: next, Role: core.RoleAssistant, Content: "sunny"}}}
	discarded := core.Event{Type: core.EventMessageDiscarded, Data: core.DiscardedData{MessageID: lost}}
	done := core.Event{Type: core.EventRunSucceeded, Data: core.RunData{Run: run}}
	for name, events := range map[string][]core.Event{
		"discarded": {piece(lost, "c1", 0, `{"a`), discarded, piece(lost, "c1", 0, `{"a`), said, done},
		"replaced":  {piece(lost, "c1", 0, `{"a`), said, done},
	} {
		chunks := newChunkEncoder(run, completionRequest{}, 1)
		response := newResponseEncoder(newResponseShape(activeRun{run: run}, nil), run, -1)
		var failed error
		for _, e := range events {
			if _, err := chunks.encode(nil, e); err != nil {
				failed = err
			}
			compare.Error(t, name, nil, compare.ErrorOf(response.encode(nil, e)))
		}
		out := response.shape.Output
		if failed == nil || len(out) != 2 || out[0].Type != "function_call" || out[0].Status != "incomplete" || *out[0].Arguments != "" || out[1].Content[0].Text != "sunny" {
			t.Errorf("%s: got the error %v and the items %+v", name, failed, out)
		}
	}
	canceled := newChunkEncoder(run, completionRequest{}, 1)
	_, _ = canceled.encode(nil, piece(lost, "c1", 0, `{}`)) // which it has said
	if _, err := canceled.encode(nil, core.Event{Type: core.EventRunCanceled, Data: core.RunData{Run: run}}); err == nil {
		t.Error("a completion ends with a call that nobody wants, and no error")
	}
}

// Pieces of a call that overtake the message before it, which only calls a tool of the server, are not lost.
func TestPiecesBeforeTheirTurn(t *testing.T) {
	t.Parallel()
	const before, next = "0192f0c4-0000-7000-8000-000000000002", "0192f0c4-0000-7000-8000-000000000003"
	run := weatherRun()
	created := func(id core.MessageID, tool string) core.Event {
		return core.Event{Type: core.EventMessageCreated, Data: core.MessageData{Message: core.Message{ID: id, Role: core.RoleAssistant, ToolCalls: []core.ToolCall{{ID: "c1", Name: tool}}}}}
	}
	chunks := newChunkEncoder(run, completionRequest{}, 1)
	response := newResponseEncoder(newResponseShape(activeRun{run: run}, nil), run, -1)
	for _, e := range []core.Event{
		piece(next, "c1", 0, `{"a`), created(before, "calculator"), created(next, "weather"),
		{Type: core.EventApprovalRequested, Data: core.ApprovalData{Approval: core.Approval{ID: "a1", Kind: core.KindClientTool, ToolCallID: "c1", Tool: "weather", Arguments: `{"a":1}`}}},
		{Type: core.EventRunWaiting, Data: core.RunData{Run: core.Run{ID: run.ID, Status: core.RunWaiting}}},
	} {
		compare.Error(t, "completion", nil, compare.ErrorOf(chunks.encode(nil, e)))
		compare.Error(t, "response", nil, compare.ErrorOf(response.encode(nil, e)))
	}
	if out := response.shape.Output; len(out) != 1 || out[0].Status != "completed" || *out[0].Arguments != `{"a":1}` {
		t.Errorf("got the items %+v, want one call", out)
	}
}

// A thought that is recognized by its end leaves a message without a text, which is whole: what was shown of
// it is no answer that broke off.
func TestTextThatWasAThought(t *testing.T) {
	t.Parallel()
	const thought, next = "0192f0c4-0000-7000-8000-000000000002", "0192f0c4-0000-7000-8000-000000000003"
	run := weatherRun()
	chunks := newChunkEncoder(run, completionRequest{}, 1)
	for _, e := range []core.Event{
		{Type: core.EventMessageDelta, Data: core.DeltaData{MessageID: thought, Text: "I compute"}},
		{Type: core.EventMessageCreated, Data: core.MessageData{Message: core.Message{ID: thought, Role: core.RoleAssistant, ToolCalls: []core.ToolCall{{ID: "c1", Name: "calculator"}}}}},
		{Type: core.EventMessageCreated, Data: core.MessageData{Message: core.Message{ID: next, Role: core.RoleAssistant, Content: "391"}}},
		{Type: core.EventRunSucceeded, Data: core.RunData{Run: run}},
	} {
		_, err := chunks.encode(nil, e)
		compare.Error(t, string(e.Type), nil, err)
	}
}

// encoders returns how each protocol writes an event, the native one beside them.
func encoders() map[string]func([]byte, core.Event) ([]byte, error) {
	return map[string]func([]byte, core.Event) ([]byte, error){
		"native":    handlers.AppendEvent,
		"chunks":    newChunkEncoder(core.Run{ID: "r"}, completionRequest{Model: "assistant"}, 1).encode,
		"responses": newResponseEncoder(newResponseShape(activeRun{}, nil), core.Run{ID: "r"}, -1).encode,
	}
}

// A delta costs at most two allocations.
func TestDeltaAllocations(t *testing.T) {
	for name, encode := range encoders() {
		buf := make([]byte, 0, 1<<16)
		offset := 0
		event := core.Event{Type: core.EventMessageDelta}
		got := testing.AllocsPerRun(1000, func() {
			event.Data = core.DeltaData{MessageID: "m", Offset: offset, Text: "word "}
			offset += len("word ")
			must.Get(encode(buf[:0], event))(t)
		})
		if got -= 1; got > 2 { // one is the event of the test
			t.Errorf("%s: got %v allocations a delta, want at most 2", name, got)
		}
	}
}
