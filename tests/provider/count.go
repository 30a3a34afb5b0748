package provider

import (
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/tiktoken-go/tokenizer"
)

// imageTokens is what an image costs here: OpenAI's price of 1,024 × 1,024 pixels.
const imageTokens = 765

// count returns the prompt's size in the provider's own tokens.
func (s *Server) count(r Received) int {
	if s.opts.Count != nil {
		return s.opts.Count(r)
	}
	n := s.o200k(string(r.RawTools))
	if len(r.System) > 0 {
		n += 4 + s.o200k(strings.Join(r.System, ""))
	}
	for _, m := range r.Messages {
		n += 4 + s.o200k(m.Text) + s.o200k(string(m.RawCalls)) + imageTokens*len(m.Images)
	}
	return int(math.Ceil(float64(n) * s.opts.Overcount))
}

// ByTheBook counts a prompt by the rules of tokens.Counter (B8): 4 tokens a message and 3
// the list, the system's blocks joined into one message; 8 a tool call, and 8 a tool.
// Text counts a text.
func ByTheBook(r Received, text func(string) int) int {
	n := 3
	if len(r.System) > 0 {
		n += 4 + text(strings.Join(r.System, "\n\n"))
	}
	for _, t := range r.Tools {
		n += 8 + text(t.Name) + text(t.Description) + text(string(t.Parameters))
	}
	for _, m := range r.Messages {
		n += MessageByTheBook(m, text)
	}
	return n
}

// MessageByTheBook counts one message of ByTheBook.
func MessageByTheBook(m Message, text func(string) int) int {
	n := 4 + text(m.Text) + imageTokens*len(m.Images)
	for _, c := range m.Calls {
		n += 8 + text(c.Name) + text(c.Arguments)
	}
	return n
}

// Cl100k returns a counter of cl100k_base tokens that is not Bobbin's.
func Cl100k() (func(string) int, error) { return cl100k() }

// O200k returns a counter of o200k_base tokens.
func O200k() (func(string) int, error) { return o200k() }

// The counters of the process: all that asks them remembers together.
//
//nolint:gochecknoglobals // loading one takes longer than most tests
var (
	cl100k = sync.OnceValues(func() (func(string) int, error) { return counterOf(tokenizer.Cl100kBase) })
	o200k  = sync.OnceValues(func() (func(string) int, error) { return counterOf(tokenizer.O200kBase) })
)

func counterOf(encoding tokenizer.Encoding) (func(string) int, error) {
	codec, err := tokenizer.Get(encoding)
	if err != nil {
		return nil, fmt.Errorf("second tokenizer: %w", err)
	}
	var counts sync.Map // text → tokens
	return func(text string) int {
		if text == "" {
			return 0
		}
		if n, ok := counts.Load(text); ok {
			return n.(int) //nolint:forcetypeassert // only ints are stored
		}
		ids, _, err := codec.Encode(text)
		if err != nil {
			return len(text) / 3
		}
		counts.Store(text, len(ids))
		return len(ids)
	}, nil
}
