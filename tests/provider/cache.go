package provider

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"regexp"
)

// caches is what was seen of prompts, by the rules of each dialect.
type caches struct {
	prompts  [][]Piece             // OpenAI: the prompts so far
	prefixes map[[32]byte]struct{} // Anthropic: what ended at a breakpoint
}

// cached is what of a prompt the cache held, and what it took, in tokens.
type cached struct{ read, write int }

// What OpenAI documents of its cache: prompts of 1,024 tokens and more, in steps of 128.
const (
	leastCached = 1024
	cacheStep   = 128
)

// piecesOf returns the tools, then the messages.
func (openAI) piecesOf(r Received) ([]Piece, error) {
	pieces := []Piece{{Text: string(r.RawTools)}}
	var raw struct {
		Messages []json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal(r.Body, &raw); err != nil {
		return nil, err
	}
	for _, m := range raw.Messages {
		pieces = append(pieces, Piece{Text: string(m)})
	}
	return pieces, nil
}

// cached is the longest beginning that any earlier prompt had too.
func (openAI) cached(c *caches, r Received) cached {
	longest := 0
	for _, before := range c.prompts {
		longest = max(longest, common(before, r.Pieces))
	}
	c.prompts = append(c.prompts, r.Pieces)
	n := r.Tokens * longest / sizeOf(r.Pieces)
	if n < leastCached {
		return cached{}
	}
	return cached{read: n / cacheStep * cacheStep}
}

// common returns how many bytes both begin with.
func common(a, b []Piece) int {
	n := 0
	for i := range min(len(a), len(b)) {
		x, y := a[i].Text, b[i].Text
		if x == y {
			n += len(x)
			continue
		}
		same := 0
		for same < min(len(x), len(y)) && x[same] == y[same] {
			same++
		}
		return n + same
	}
	return n
}

func sizeOf(pieces []Piece) int {
	n := 1 // never 0
	for _, p := range pieces {
		n += len(p.Text)
	}
	return n
}

// lookback is how many blocks before a breakpoint Anthropic looks for a prefix that it
// has (documented: 20).
const lookback = 20

// breakpoint matches what marks a block; where it stands changes nothing else.
var breakpoint = regexp.MustCompile(`,?"cache_control":\{"type":"ephemeral"\}`)

// cached is the longest prefix that ends at or shortly before a breakpoint and ended
// at one before. What follows up to the last breakpoint is written.
func (anthropic) cached(c *caches, r Received) cached {
	pieces := r.Pieces
	if c.prefixes == nil {
		c.prefixes = map[[32]byte]struct{}{}
	}
	var sums [][32]byte
	var ends []int
	hash, n := sha256.New(), 0
	for _, p := range pieces {
		hash.Write([]byte(p.Text)) // a digest cannot fail to be written
		n += len(p.Text)
		sums, ends = append(sums, [32]byte(hash.Sum(nil))), append(ends, n)
	}
	total := sizeOf(pieces)
	tokens := func(i int) int { return r.Tokens * ends[i] / total }
	read, written := 0, 0
	for i, p := range pieces {
		if !p.Mark {
			continue
		}
		for j := i; j >= 0 && j > i-lookback; j-- {
			if _, ok := c.prefixes[sums[j]]; ok {
				read = max(read, tokens(j))
				break
			}
		}
		if tokens(i) >= leastCached {
			written = max(written, tokens(i))
		}
	}
	for i, p := range pieces {
		if p.Mark && tokens(i) >= leastCached {
			c.prefixes[sums[i]] = struct{}{}
		}
	}
	return cached{read: read, write: max(written-read, 0)}
}

// piecesOf returns the blocks of a request: tools, system, messages. Another choice of
// tools is another beginning of the messages.
func (anthropic) piecesOf(r Received) ([]Piece, error) {
	var req struct {
		Tools      []json.RawMessage `json:"tools"`
		System     []json.RawMessage `json:"system"`
		ToolChoice json.RawMessage   `json:"tool_choice"`
		Messages   []struct {
			Role    string            `json:"role"`
			Content []json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(r.Body, &req); err != nil {
		return nil, err
	}
	var out []Piece
	add := func(before string, raw json.RawMessage) {
		text := breakpoint.ReplaceAll(raw, nil)
		out = append(out, Piece{Text: before + string(text), Mark: !bytes.Equal(text, raw)})
	}
	for _, list := range [][]json.RawMessage{req.Tools, req.System} {
		for _, raw := range list {
			add("", raw)
		}
	}
	choice := string(req.ToolChoice)
	for _, m := range req.Messages {
		for _, raw := range m.Content {
			add(choice+m.Role+":", raw)
			choice = ""
		}
	}
	return out, nil
}
