package provider

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"regexp"
	"slices"
)

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
