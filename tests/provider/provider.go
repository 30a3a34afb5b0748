// Package provider is a language model for tests behind real HTTP: it speaks the
// dialects of OpenAI (chat completions) and of Anthropic, counts with a
// tokenizer that is not Bobbin's, refuses what does not fit its window, and caches
// prompts, as real providers do.
//
// What it answers follows from the request alone: "answer to: " and the latest
// user message, or only that if the request has a response format. A user message with
// the word "tool" in it makes it call the calculator first, if that is offered. A request
// whose system text asks for a summary gets one. With Options.Strict its answers to Anthropic's
// clients have signed thoughts, and the history that comes back is checked.
package provider

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// Options change the provider.
type Options struct {
	Window    int     // prompt and max_tokens together; 0 = no limit
	Overcount float64 // its counts are those of o200k_base times this; 0 = 1
	// Count counts a prompt instead; nil = as Overcount says.
	Count func(r Received) int
	// Cache reports what of a prompt it has seen before, as Anthropic does. Without it nothing is ever cached.
	Cache bool
	// Hold is asked before an answer is ended; the answer goes on when it
	// returns. It gets the latest user message. nil = never held.
	Hold func(question string)
	// Pieces is how many an answer comes in after its first words, with Hold before each;
	// 0 = one.
	Pieces int
	// Fault is asked before a request is answered, and may answer it instead: it
	// returns true if it has. nil = never.
	Fault func(w http.ResponseWriter, a Asked) bool
	// Calls decides which tools a request that may call some is answered by; none = by
	// a text. nil = the calculator, as the question says.
	Calls func(r Received) []Call
	// Say returns what an answer says. nil = the question.
	Say func(question string) string
	// Summarize returns the summary of the material. nil = Summary.
	Summarize func(material string) string
	// Bare leaves out the first words of an answer, "answer to: ".
	Bare bool
	// Record keeps the prompts for Prompts, Images and Received.
	Record bool
	// At is asked at each point of a request, which goes on when it returns. nil =
	// not asked.
	At func(p Point, a Asked)
	// Strict checks the thoughts and compactions that come back to /v1/messages, and answers with
	// new ones. nil = there are none.
	Strict *Strict
	// Cloud makes it a cloud that serves Claude; its address has no /v1 then. nil = Anthropic itself.
	Cloud Cloud
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
	URL string // base URL with /v1, unless it is a cloud

	opts  Options
	http  *httptest.Server
	o200k func(string) int

	strict *verifier // nil = not strict

	requests  atomic.Int64
	rejected  atomic.Int64
	summaries atomic.Int64
	largest   atomic.Int64 // stored under mu

	mu       sync.Mutex
	received []Received        // requests for answers; guarded by mu
	prefixes map[[32]byte]bool // of prompts, that ended at a breakpoint; guarded by mu
}

// New starts a provider; Close stops it.
func New(opts Options) (*Server, error) {
	o200k, err := O200k()
	if err != nil {
		return nil, err
	}
	opts.Overcount = cmp.Or(opts.Overcount, 1)
	if opts.Summarize == nil {
		opts.Summarize = Summary
	}
	s := &Server{opts: opts, o200k: o200k, prefixes: map[[32]byte]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, openAI{}) })
	messages := func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, anthropic{}) }
	if opts.Strict != nil {
		s.strict, messages = &verifier{Strict: *opts.Strict}, s.serveMessages
	}
	mux.HandleFunc("POST /v1/messages", messages)
	if opts.Cloud != nil {
		s.http = httptest.NewServer(opts.Cloud.Wrap(mux))
		s.URL = s.http.URL
		return s, nil
	}
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

// Received returns the requests for answers, in order, if Options.Record says so.
func (s *Server) Received() []Received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Received(nil), s.received...)
}

// Thoughts returns what became of the thoughts that came back so far, if Options.Strict is set.
func (s *Server) Thoughts() Thoughts { return s.strict.counts() }

// Prompts returns the user messages of every request for an answer that was given, in
// order, if Options.Record says so.
func (s *Server) Prompts() [][]string {
	var out [][]string
	for _, r := range s.Received() {
		if r.Answered {
			out = append(out, r.users())
		}
	}
	return out
}

// Images returns the addresses of the images in every request for an answer that was
// given, in order, if Options.Record says so.
func (s *Server) Images() [][]string {
	var out [][]string
	for _, r := range s.Received() {
		if !r.Answered {
			continue
		}
		var images []string
		for _, m := range r.Messages {
			images = append(images, m.Images...)
		}
		out = append(out, images)
	}
	return out
}

// dialect is how a provider is spoken to.
type dialect interface {
	// take takes a request apart.
	take(body []byte) (Received, error)
	// refuse says that a prompt and its answer are too long.
	refuse(w http.ResponseWriter, limit, prompt, output int)
	// answer begins an answer to a prompt of that size.
	answer(w http.ResponseWriter, prompt int, c cached) answer
}

// answer writes an answer piece by piece.
type answer interface {
	text(text string)
	toolCall(id, name, arguments string)
	end()
}

// serve answers a request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, d dialect) {
	s.requests.Add(1)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the caller went away
	}
	req, err := d.take(body)
	if err != nil {
		http.Error(w, `{"error":{"message":"not JSON","type":"invalid_request_error"}}`, http.StatusBadRequest)
		return
	}
	a := req.asked()
	if s.opts.Fault != nil && s.opts.Fault(w, a) {
		return
	}
	req.Tokens = s.count(req)
	if s.opts.Window > 0 && req.Tokens+req.MaxOutput > s.opts.Window {
		s.rejected.Add(1)
		d.refuse(w, s.opts.Window, req.Tokens, req.MaxOutput)
		return
	}
	req.calls = s.calls(req, a)
	s.at(PointPrompt, a)
	out := d.answer(w, req.Tokens, s.keep(&req, a))
	s.answer(out, w, req, a)
	out.end()
	flush(w)
	s.at(PointEnd, a)
}

// calls returns the tool calls that the request is answered by.
func (s *Server) calls(r Received, a Asked) []Call {
	switch {
	case a.Summary || len(r.Tools) == 0 || r.ToolChoice == "none":
		return nil
	case s.opts.Calls != nil:
		return s.opts.Calls(r)
	case r.callsTool(a):
		return []Call{{ID: fmt.Sprintf("call_%d", s.requests.Load()), Name: namedTool(r.Offered, a.Question, "calculator"), Arguments: `{"expression": "6 * 7"}`}}
	default:
		return nil
	}
}

// keep records the request, and returns what of it was seen before.
func (s *Server) keep(r *Received, a Asked) cached {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.largest.Store(max(s.largest.Load(), int64(r.Tokens)))
	var c cached
	if s.opts.Cache {
		c = r.cached(s.prefixes)
	}
	r.CacheRead, r.CacheWrite, r.Answered = c.read, c.write, len(r.calls) == 0 && !r.Compaction
	if s.opts.Record && (!a.Summary || r.Compaction) {
		s.received = append(s.received, *r)
	}
	return c
}

// at tells how far a request has come.
func (s *Server) at(p Point, a Asked) {
	if s.opts.At != nil {
		s.opts.At(p, a)
	}
}

// answer streams what the request's last messages ask for.
func (s *Server) answer(out answer, w http.ResponseWriter, req Received, a Asked) {
	switch {
	case a.Summary:
		s.summaries.Add(1)
		s.at(PointSummary, a)
		out.text(s.opts.Summarize(a.Question))
	case len(req.calls) > 0:
		s.at(PointTool, a)
		for _, c := range req.calls {
			out.toolCall(c.ID, c.Name, c.Arguments)
		}
	default:
		if len(req.Format) == 0 && !s.opts.Bare {
			out.text("answer to: ")
			flush(w)
		}
		s.at(PointStream, a)
		text := a.Question
		if s.opts.Say != nil {
			text = s.opts.Say(a.Question)
		}
		for piece := range pieces(text, s.opts.Pieces) {
			if s.opts.Hold != nil {
				s.opts.Hold(a.Question)
			}
			out.text(piece)
			flush(w)
		}
	}
}

// callPieces is how many pieces the arguments of a call come in.
const callPieces = 3

// pieces cuts the text into about n pieces of whole characters.
func pieces(text string, n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		for n = max(n, 1); ; n-- {
			end := len(text) / n
			for n > 1 && end < len(text) && !utf8.RuneStart(text[end]) {
				end++
			}
			if n == 1 {
				end = len(text)
			}
			if !yield(text[:end]) || end == len(text) {
				return
			}
			text = text[end:]
		}
	}
}

func flush(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}
