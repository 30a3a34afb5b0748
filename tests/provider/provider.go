// Package provider is a language model for tests behind real HTTP: it speaks the
// OpenAI dialect, counts with a tokenizer that is not Bobbin's, and refuses what
// does not fit its window, as real providers do.
//
// What it answers follows from the request alone: "answer to: " and the latest
// user message. A user message with the word "tool" in it makes it call the
// calculator first, if that is offered. A request whose system text asks for a
// summary gets one.
package provider

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tiktoken-go/tokenizer"
)

// Options change the provider.
type Options struct {
	Window    int     // prompt and max_tokens together; 0 = no limit
	Overcount float64 // its counts are those of o200k_base times this; 0 = 1
	// Hold is asked before an answer is ended; the answer goes on when it
	// returns. It gets the latest user message. nil = never held.
	Hold func(question string)
	// Fault is asked before a request is answered, and may answer it instead: it
	// returns true if it has. nil = never.
	Fault func(w http.ResponseWriter, a Asked) bool
	// Record keeps the prompts for Prompts.
	Record bool
	// At is asked at each point of a request, which goes on when it returns. nil =
	// not asked.
	At func(p Point, a Asked)
}

// Point is how far a request has come.
type Point string

// The points of a request, in order; it passes one of the three in the middle.
const (
	PointPrompt  Point = "prompt"  // it was taken, nothing is answered
	PointStream  Point = "stream"  // half of an answer is sent
	PointTool    Point = "tool"    // a tool call is about to be sent
	PointSummary Point = "summary" // a summary is about to be sent
	PointEnd     Point = "end"     // everything is sent
)

// Asked is what a request asks for.
type Asked struct {
	Question string // the latest user message; of a summary, its material
	Summary  bool
}

// Server is a running provider. Safe for concurrent use.
type Server struct {
	URL string // base URL with /v1

	opts   Options
	http   *httptest.Server
	codec  tokenizer.Codec
	counts sync.Map // content → tokens

	requests  atomic.Int64
	rejected  atomic.Int64
	summaries atomic.Int64
	busy      atomic.Int64 // nanoseconds inside the handler
	largest   atomic.Int64

	mu      sync.Mutex
	images  [][]string // the addresses of the images of each, likewise; guarded by mu
	prompts [][]string // the contents of each answer request's messages, in order; guarded by mu
}

// New starts a provider; Close stops it.
func New(opts Options) (*Server, error) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		return nil, fmt.Errorf("second tokenizer: %w", err)
	}
	if opts.Overcount == 0 {
		opts.Overcount = 1
	}
	s := &Server{opts: opts, codec: codec}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.complete)
	s.http = httptest.NewServer(mux)
	s.URL = s.http.URL + "/v1"
	return s, nil
}

// Close stops the provider and waits for its handlers.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Requests returns how many requests came, refused ones too.
func (s *Server) Requests() int64 { return s.requests.Load() }

// Rejected returns how many prompts were refused as too long.
func (s *Server) Rejected() int64 { return s.rejected.Load() }

// Summaries returns how many summaries it was asked for.
func (s *Server) Summaries() int64 { return s.summaries.Load() }

// Largest returns the largest prompt that it took, in its own tokens.
func (s *Server) Largest() int64 { return s.largest.Load() }

// Busy returns how long it has spent on answers so far.
func (s *Server) Busy() time.Duration { return time.Duration(s.busy.Load()) }

// Prompts returns the user messages of every request for an answer, in order, if
// Options.Record says so.
func (s *Server) Prompts() [][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([][]string(nil), s.prompts...)
}

// Images returns the addresses of the images in every request for an answer, in
// order, if Options.Record says so.
func (s *Server) Images() [][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([][]string(nil), s.images...)
}

type request struct {
	Messages            []message       `json:"messages"`
	Tools               json.RawMessage `json:"tools"`
	ToolChoice          any             `json:"tool_choice"`
	MaxTokens           int             `json:"max_tokens"`
	MaxCompletionTokens int             `json:"max_completion_tokens"`
	Stream              bool            `json:"stream"`
}

type message struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ToolCalls json.RawMessage `json:"tool_calls,omitempty"`
}

// text returns the message's text, whatever form its content has.
func (m message) text() string {
	var s string
	if json.Unmarshal(m.Content, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(m.Content, &parts) != nil {
		return string(m.Content)
	}
	for _, p := range parts {
		s += p.Text
	}
	return s
}

// images returns the addresses of the message's images.
func (m message) images() []string {
	var parts []struct {
		ImageURL struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if json.Unmarshal(m.Content, &parts) != nil {
		return nil
	}
	var urls []string
	for _, p := range parts {
		if p.ImageURL.URL != "" {
			urls = append(urls, p.ImageURL.URL)
		}
	}
	return urls
}

// imageTokens is what an image costs here: OpenAI's price of 1,024 × 1,024 pixels.
const imageTokens = 765

func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	defer func() { s.busy.Add(int64(time.Since(start))) }()
	s.requests.Add(1)
	var req request
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, `{"error":{"message":"not JSON","type":"invalid_request_error"}}`, http.StatusBadRequest)
		return
	}
	system, users := req.texts()
	a := Asked{Summary: strings.Contains(system, "You summarize conversations")}
	if len(users) > 0 {
		a.Question = users[len(users)-1]
	}
	if s.opts.Fault != nil && s.opts.Fault(w, a) {
		return
	}
	prompt := s.count(req)
	if asked := prompt + max(req.MaxTokens, req.MaxCompletionTokens); s.opts.Window > 0 && asked > s.opts.Window {
		s.rejected.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":"This model's maximum context length is %d tokens. However, you requested %d tokens (%d in the messages, %d in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
			s.opts.Window, asked, prompt, asked-prompt)
		return
	}
	s.keepLargest(int64(prompt))
	s.at(PointPrompt, a)
	out := stream{w: w}
	s.answer(&out, req, a, users)
	out.end(prompt)
	out.flush()
	s.at(PointEnd, a)
}

// at tells how far a request has come.
func (s *Server) at(p Point, a Asked) {
	if s.opts.At != nil {
		s.opts.At(p, a)
	}
}

func (s *Server) keepLargest(n int64) {
	for {
		old := s.largest.Load()
		if n <= old || s.largest.CompareAndSwap(old, n) {
			return
		}
	}
}

// count returns the prompt's size in the provider's own tokens.
func (s *Server) count(req request) int {
	n := s.tokens(string(req.Tools))
	for _, m := range req.Messages {
		n += 4 + s.tokens(m.text()) + s.tokens(string(m.ToolCalls)) + imageTokens*len(m.images())
	}
	return int(math.Ceil(float64(n) * s.opts.Overcount))
}

func (s *Server) tokens(text string) int {
	if text == "" {
		return 0
	}
	if n, ok := s.counts.Load(text); ok {
		return n.(int) //nolint:forcetypeassert // only ints are stored
	}
	ids, _, err := s.codec.Encode(text)
	if err != nil {
		return len(text) / 3
	}
	s.counts.Store(text, len(ids))
	return len(ids)
}

// texts returns the system text and the user messages.
func (r request) texts() (system string, users []string) {
	for _, m := range r.Messages {
		switch m.Role {
		case "system":
			system += m.text()
		case "user":
			users = append(users, m.text())
		}
	}
	return system, users
}

// answer streams what the request's last messages ask for.
func (s *Server) answer(out *stream, req request, a Asked, users []string) {
	last := req.Messages[len(req.Messages)-1].Role
	switch {
	case a.Summary:
		s.summaries.Add(1)
		s.at(PointSummary, a)
		out.text(summary(a.Question))
	case strings.Contains(a.Question, "tool") && last != "tool" && len(req.Tools) > 0 && req.ToolChoice != "none":
		s.at(PointTool, a)
		out.toolCall(fmt.Sprintf("call_%d", s.requests.Load()), "calculator", `{"expression": "6 * 7"}`)
	default:
		s.keepPrompt(req, users)
		out.text("answer to: ")
		out.flush()
		s.at(PointStream, a)
		if s.opts.Hold != nil {
			s.opts.Hold(a.Question)
		}
		out.text(a.Question)
	}
}

func (s *Server) keepPrompt(req request, users []string) {
	if !s.opts.Record {
		return
	}
	var images []string
	for _, m := range req.Messages {
		images = append(images, m.images()...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompts, s.images = append(s.prompts, users), append(s.images, images)
}

// summary is the summary of a transcript: short, and different each time.
func summary(request string) string {
	return fmt.Sprintf("## Goal\nTest the long conversation.\n\n## Facts\n- The notes were made from %d characters.\n- Turns were answered in order.", len(request))
}

// stream writes chunks as the OpenAI API does.
type stream struct {
	w      http.ResponseWriter
	began  bool
	finish string
	output int
}

func (s *stream) chunk(delta string, finish string) {
	if !s.began {
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.began = true
	}
	f := "null"
	if finish != "" {
		f = `"` + finish + `"`
	}
	fmt.Fprintf(s.w, "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, f)
}

func (s *stream) text(text string) {
	raw, err := json.Marshal(text)
	if err != nil {
		return
	}
	s.finish = "stop"
	s.output += len(text) / 4
	s.chunk(`{"content":`+string(raw)+`}`, "")
}

func (s *stream) toolCall(id, name, args string) {
	raw, err := json.Marshal(args)
	if err != nil {
		return
	}
	s.finish = "tool_calls"
	s.output += 20
	s.chunk(fmt.Sprintf(`{"tool_calls":[{"index":0,"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}]}`, id, name, raw), "")
}

func (s *stream) flush() {
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}

func (s *stream) end(prompt int) {
	s.chunk("{}", s.finish)
	fmt.Fprintf(s.w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%d}}\n\ndata: [DONE]\n\n",
		prompt, s.output, prompt+s.output)
}
