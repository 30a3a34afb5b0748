package openai

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

// script is a run as its events tell it.
type script struct {
	live   []core.Event // as a watcher gets them while it runs
	stored []core.Event // as they are replayed: text comes with its message
	text   string       // of the answer
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
		end := core.Event{Type: core.EventMessageCreated, Data: core.MessageData{Message: core.Message{ID: id, Role: core.RoleAssistant, Content: text, FinishReason: core.FinishStop}}}
		if i < len(texts)-1 && rapid.Bool().Draw(t, "discarded") {
			end = core.Event{Type: core.EventMessageDiscarded, Data: core.DiscardedData{MessageID: id}}
			s.stored = append(s.stored, end)
			late := core.Event{Type: core.EventMessageDelta, Data: core.DeltaData{MessageID: id, Text: text}}
			s.live = append(s.live, rapid.SampledFrom([][]core.Event{{end}, {end, late}, {late}}).Draw(t, "how it is discarded")...)
			continue
		}
		s.text += text
		s.live, s.stored = append(s.live, end), append(s.stored, end)
	}
	done := core.Event{Type: core.EventRunSucceeded, Data: core.RunData{}}
	s.live, s.stored = append(s.live, done), append(s.stored, done)
	return s
}

// isBoundary reports whether a character begins at the offset.
func isBoundary(text string, at int) bool { return text[at]&0xC0 != 0x80 }

// received is what a client has got of a response.
type received struct {
	texts  map[int]string // by output_index
	last   int64          // sequence number
	output string         // of the last event
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
		case "response.output_text.delta":
			r.texts[e.Index] += e.Delta
		case "response.output_text.done":
			if e.Text != "" && r.texts[e.Index] != e.Text {
				t.Fatalf("item %d: the pieces are %q, the text is %q", e.Index, r.texts[e.Index], e.Text)
			}
		case "response.completed":
			r.ended = true
			for _, item := range e.Response.Output {
				for _, part := range item.Content {
					r.output += part.Text
				}
			}
		}
	}
}

// frames returns what the encoder writes.
func frames(t *rapid.T, events []core.Event, after int64) []byte {
	enc := newResponseEncoder(newResponseShape(activeRun{}), "0192f0c4-0000-7000-8000-000000000001", after)
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
		if !r.ended || r.output != s.text {
			t.Fatalf("got %q, ended %v, want %q", r.output, r.ended, s.text)
		}
	})
}

// The chunks of a chat completion joined are the texts of the run's messages. A text that is
// discarded after a part of it was sent is an error.
func TestChunksAreTheText(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(t *rapid.T) {
		s := drawScript(t)
		enc := newChunkEncoder(core.Run{ID: "0192f0c4-0000-7000-8000-000000000001"}, completionRequest{Model: "assistant"}, 1)
		var out []byte
		var failed error
		for _, e := range s.live {
			if out, failed = enc.encode(out, e); failed != nil {
				break
			}
		}
		var text string
		for line := range strings.SplitSeq(string(out), "\n") {
			var chunk struct {
				Choices []struct {
					Delta struct {
						Content string `json:"content"`
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
		}
		if failed == nil && strings.ReplaceAll(text, textSeparator, "") != strings.ReplaceAll(s.text, textSeparator, "") {
			t.Fatalf("got %q, want %q", text, s.text)
		}
		if failed == nil != strings.HasSuffix(string(out), "data: [DONE]\n\n") {
			t.Fatalf("error %v, and the stream ends with %q", failed, out[max(0, len(out)-40):])
		}
	})
}

// An answer that is not streamed has no text of messages that were discarded.
func TestWholeAnswer(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(t *rapid.T) {
		s := drawScript(t)
		answer, _, err := collectAnswer(context.Background(), func(yield func(core.Event, error) bool) {
			for _, e := range s.live {
				if !yield(e, nil) {
					return
				}
			}
		})
		if got := strings.ReplaceAll(answer.storedText(), textSeparator, ""); err != nil || got != strings.ReplaceAll(s.text, textSeparator, "") {
			t.Fatalf("got %q, %v, want %q", got, err, s.text)
		}
	})
}

// encoders returns how each protocol writes an event, the native one beside them.
func encoders() map[string]func([]byte, core.Event) ([]byte, error) {
	return map[string]func([]byte, core.Event) ([]byte, error){
		"native":    handlers.AppendEvent,
		"chunks":    newChunkEncoder(core.Run{ID: "r"}, completionRequest{Model: "assistant"}, 1).encode,
		"responses": newResponseEncoder(newResponseShape(activeRun{}), "r", -1).encode,
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

// deltas are in how many pieces the text of the benchmark comes: as many as a long answer has.
const deltas = 4000

func BenchmarkDelta(b *testing.B) {
	for name := range encoders() {
		b.Run(name, func(b *testing.B) {
			var events [deltas]core.Event
			for i := range events {
				events[i] = core.Event{Type: core.EventMessageDelta, Data: core.DeltaData{MessageID: "m", Offset: i * len("word "), Text: "word "}}
			}
			buf := make([]byte, 0, 1<<12)
			encode := encoders()[name]
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i == deltas {
					i, encode = 0, encoders()[name]
				}
				must.Get(encode(buf[:0], events[i]))(b)
			}
		})
	}
}

// The usage of a completion has what the run's has.
func TestUsage(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(usageOf(core.Usage{InputTokens: 5, OutputTokens: 3, ReasoningTokens: 2, CacheReadTokens: 1}))
	const want = `{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8,"prompt_tokens_details":{"cached_tokens":1},"completion_tokens_details":{"reasoning_tokens":2}}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}
