package provider

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/tiktoken-go/tokenizer"
)

// Received is a request as it came over the wire, taken apart.
type Received struct {
	Body       []byte
	System     []string // the system's text, block by block where the dialect has blocks
	Messages   []Message
	Tools      []Tool
	RawTools   json.RawMessage
	ToolChoice string // "none", "auto" …; empty = not said
	MaxOutput  int
	Format     json.RawMessage // of the answer, as OpenAI's clients ask for it; empty = a text

	Tokens     int  // of the prompt, as the provider counts
	CacheRead  int  // of these, what its cache held
	CacheWrite int  // and what it took
	Answered   bool // by a text; otherwise by a tool call
	calls      []Call

	// Of a strict provider.
	Thoughts        Thoughts         // what became of those in it
	Transformations []Transformation // which ones failed a check
	Compaction      bool             // it asks for a compaction
	Offered         []Tool           // the tools that the model may call, those that messages added included
}

// Message is a message of a request.
type Message struct {
	Role     string // user, assistant or tool
	Text     string
	Calls    []Call
	RawCalls json.RawMessage
	Images   []string // their addresses
	Files    []File
	Raw      json.RawMessage
}

// File is a file of a message.
type File struct{ Name, Data string }

// Call is a tool call of a message.
type Call struct{ ID, Name, Arguments string }

// Tool is a tool definition.
type Tool struct {
	Name, Description string
	Parameters        json.RawMessage
}

// asked returns what the request asks for.
func (r Received) asked() Asked {
	a := Asked{Summary: strings.Contains(strings.Join(r.System, ""), "You summarize conversations")}
	if users := r.users(); len(users) > 0 {
		a.Question = users[len(users)-1]
	}
	if r.Compaction {
		a = Asked{Question: r.transcript(), Summary: true}
	}
	return a
}

// callsTool reports whether the question asks for a tool that was not called yet.
func (r Received) callsTool(a Asked) bool {
	last := ""
	if n := len(r.Messages); n > 0 {
		last = r.Messages[n-1].Role
	}
	return strings.Contains(a.Question, "tool") && last != "tool"
}

// users returns the texts of the user messages.
func (r Received) users() []string {
	var out []string
	for _, m := range r.Messages {
		if m.Role == "user" {
			out = append(out, m.Text)
		}
	}
	return out
}

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

// Cl100k and O200k return counters of cl100k_base and o200k_base tokens that are not Bobbin's, one each for the
// process: all that asks them remembers together.
//
//nolint:gochecknoglobals // loading one takes longer than most tests
var (
	Cl100k = sync.OnceValues(func() (func(string) int, error) { return counterOf(tokenizer.Cl100kBase) })
	O200k  = sync.OnceValues(func() (func(string) int, error) { return counterOf(tokenizer.O200kBase) })
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

// How many words a summary has at most of its transcript, and of the summary before, and a line of
// it at least: a list of single words is no summary.
const (
	summaryWords = 120
	keptWords    = 40
	lineWords    = 4
)

// Summary is the summary that a request asks for: different each time, and one that can be
// stored, because it takes its words from all of the transcript and from the summary
// before.
func Summary(request string) string {
	text := between(request, "transcript")
	taken := map[string]bool{}
	var b strings.Builder
	fmt.Fprintf(&b, "## Goal\nTest the long conversation.\n\n## Facts\n- The notes were made from %d characters.\n- Turns were answered in order.\n", len(request))
	list(&b, between(request, "summary"), keptWords, taken)
	messages := strings.Split(text, "\n[")
	most := min(summaryWords, len(text)/40)
	share := max(most/len(messages), lineWords)
	for i := 0; i < len(messages); i += max(len(messages)*share/max(most, 1), 1) {
		list(&b, messages[i], share, taken)
	}
	return strings.TrimSpace(b.String())
}

// list writes a line of n words of the text as they follow each other, beginning with the first that
// was not taken before and says most: a number, or a long word.
func list(b *strings.Builder, text string, n int, taken map[string]bool) {
	words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	first := slices.IndexFunc(words, func(w string) bool { return !taken[w] && (len(w) >= 5 || unicode.IsDigit(rune(w[0])) && len(w) > 1) })
	if first < 0 {
		return
	}
	line := words[first:min(first+n, len(words))]
	for _, w := range line {
		taken[w] = true
	}
	b.WriteString("- " + strings.Join(line, " ") + "\n")
}

// between returns what stands between the tags in the text.
func between(text, tag string) string {
	_, rest, _ := strings.Cut(text, "<"+tag+">\n")
	inner, _, _ := strings.Cut(rest, "\n</"+tag+">")
	return inner
}

// named is a line of a message that names a call: call files__read {"path": "x"}.
var named = regexp.MustCompile(`(?m)^call (\S+) (\{.*\})$`)

// CallNamed is Options.Calls of a model that makes the calls that a user's message names, each in
// a line of its own.
func CallNamed(r Received) []Call {
	last := r.Messages[len(r.Messages)-1]
	if last.Role != "user" {
		return nil
	}
	var calls []Call
	for i, m := range named.FindAllStringSubmatch(last.Text, -1) {
		calls = append(calls, Call{ID: fmt.Sprintf("call_%d", i), Name: m[1], Arguments: m[2]})
	}
	return calls
}

// cached is what of a prompt the cache held, and what it took, in tokens.
type cached struct{ read, write int }

// leastCached is how many tokens a prefix has at least that Anthropic keeps (documented: 1,024).
const leastCached = 1024

// lookback is how many blocks before a breakpoint Anthropic looks for a prefix that it
// has (documented: 20).
const lookback = 20

// breakpoint matches what marks a block; where it stands changes nothing else.
var breakpoint = regexp.MustCompile(`,?"cache_control":\{"type":"ephemeral"\}`)

// cached is the longest prefix that ends at or shortly before a breakpoint and ended
// at one before. What follows up to the last breakpoint is written. It adds to the prefixes.
func (r Received) cached(prefixes map[[32]byte]bool) cached {
	pieces := r.pieces()
	var sums [][32]byte
	var ends []int
	hash, n := sha256.New(), 0
	for _, p := range pieces {
		hash.Write([]byte(p.text)) // a digest cannot fail to be written
		n += len(p.text)
		sums, ends = append(sums, [32]byte(hash.Sum(nil))), append(ends, n)
	}
	tokens := func(i int) int { return r.Tokens * ends[i] / (n + 1) }
	read, written := 0, 0
	for i, p := range pieces {
		if !p.mark {
			continue
		}
		for j := i; j >= 0 && j > i-lookback; j-- {
			if prefixes[sums[j]] {
				read = max(read, tokens(j))
				break
			}
		}
		if tokens(i) >= leastCached {
			written = max(written, tokens(i))
		}
	}
	for i, p := range pieces {
		if p.mark && tokens(i) >= leastCached {
			prefixes[sums[i]] = true
		}
	}
	return cached{read: read, write: max(written-read, 0)}
}

// piece is a part of a prompt as a cache sees it.
type piece struct {
	text string // without what only marks it
	mark bool   // it ends with a breakpoint
}

// pieces returns the blocks of a request: tools, system, messages. Another choice of
// tools is another beginning of the messages.
func (r Received) pieces() (out []piece) {
	var req struct {
		Tools      []json.RawMessage `json:"tools"`
		System     []json.RawMessage `json:"system"`
		ToolChoice json.RawMessage   `json:"tool_choice"`
		Messages   []struct {
			Role    string            `json:"role"`
			Content []json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	_ = json.Unmarshal(r.Body, &req) // take has decoded it
	add := func(before string, raw json.RawMessage) {
		text := breakpoint.ReplaceAll(raw, nil)
		out = append(out, piece{before + string(text), !bytes.Equal(text, raw)})
	}
	for _, raw := range slices.Concat(req.Tools, req.System) {
		add("", raw)
	}
	choice := string(req.ToolChoice)
	for _, m := range req.Messages {
		for _, raw := range m.Content {
			add(choice+m.Role+":", raw)
			choice = ""
		}
	}
	return out
}
