package provider

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Strict makes a provider check the history that it gets back, as Anthropic and OpenAI do since the
// autumn of 2026: a thought is bound to the account, the model and everything before it.
type Strict struct {
	Account string
	// Secret is the provider's: servers with one secret are one provider. What another secret
	// signed is forged.
	Secret     string
	OnMismatch Mismatch
	// AlwaysThinks makes the models think on every request that does not disable it.
	AlwaysThinks bool
	// Redacted adds a redacted_thinking block to each thought (Anthropic).
	Redacted bool
	// RefusesToolChanges does not know what adds and removes tools in a conversation.
	RefusesToolChanges bool
	// Unverified refuses to summarize reasoning, which is for verified organizations only (OpenAI).
	Unverified bool
	// KeyOrder makes another order of the keys of an object a change. Anthropic's page says that it
	// is none for the thoughts; it is one for the prompt cache.
	KeyOrder bool
	// RefusesBlob reports whether the nth compaction of those that are sent back, from 1 on, is
	// refused as unreadable. nil = none is.
	RefusesBlob func(n int) bool
}

// Mismatch is what Anthropic does with a thought whose prefix has changed, unless the request says.
type Mismatch int

// Accounts since 2026-08-31 get an error or lose the thought, which depends on the model.
const (
	Refuse Mismatch = iota
	Drop
)

// Thoughts counts what became of the thoughts and compactions that were sent back.
type Thoughts struct {
	Verified int // thoughts that the model could read
	Dropped  int // thoughts that were removed from the prompt
	Refused  int // requests that were refused because of a thought or a compaction
}

// Transformation reports a thought that failed a check: an entry of Anthropic's
// input_transformations.
type Transformation struct {
	Type   string `json:"type"` // thinking_dropped
	Path   string `json:"path"` // messages.{i}.content.{j}
	Reason string `json:"reason"`
}

// verifier signs and checks for one account. Safe for concurrent use.
type verifier struct {
	Strict

	mu       sync.Mutex
	thoughts Thoughts // guarded by mu
	blobs    int      // compactions that were sent back; guarded by mu
}

// add adds to the counts.
func (v *verifier) add(t Thoughts) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.thoughts.Verified += t.Verified
	v.thoughts.Dropped += t.Dropped
	v.thoughts.Refused += t.Refused
}

// counts returns the counts so far.
func (v *verifier) counts() Thoughts {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.thoughts
}

// refusesBlob counts a compaction that was sent back and reports whether it is refused.
func (v *verifier) refusesBlob() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.blobs++
	return v.RefusesBlob != nil && v.RefusesBlob(v.blobs)
}

// seal is what a signature or an opaque blob holds for its provider.
type seal struct {
	Account, Model string
	ID             string // of the thought
	Before         string // the thought before it
	Text           string // digest of the text that it was sent with
	Config         string // digest of what precedes the messages
	Prefix         prefix
	Role           string // of the last message that a compaction summarizes
}

// sign returns the seal as an opaque text.
func (s Strict) sign(v seal) string {
	raw, err := json.Marshal(v)
	if err != nil { // a struct of texts can always be written
		return ""
	}
	return encode(raw) + "." + encode(s.mac(raw))
}

// open returns the seal of an opaque text, unless it was not signed with this secret.
func (s Strict) open(signature string) (seal, bool) {
	var out seal
	payload, mac, _ := strings.Cut(signature, ".")
	raw, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil || encode(s.mac(raw)) != mac || json.Unmarshal(raw, &out) != nil {
		return seal{}, false
	}
	return out, true
}

func (s Strict) mac(raw []byte) []byte {
	h := hmac.New(sha256.New, []byte(s.Secret))
	h.Write(raw) // a digest cannot fail to be written
	return h.Sum(nil)
}

func encode(raw []byte) string { return base64.RawURLEncoding.EncodeToString(raw) }

// prefix identifies everything before a point in a conversation. After a compaction there are
// several: those of the history that it replaces, under which kept thoughts stay valid, and the last
// one of the compaction itself, to which new thoughts are bound.
type prefix []string

// add returns the prefix with one more part in it.
func (p prefix) add(part string) prefix {
	out := make(prefix, 0, len(p))
	for _, one := range p {
		out = append(out, digest(one, part))
	}
	return out
}

// last returns the prefix that new thoughts are bound to.
func (p prefix) last() prefix { return p[len(p)-1:] }

// holds reports whether a thought that is bound to the other prefix is valid here.
func (p prefix) holds(other prefix) bool {
	return len(other) == 1 && slices.Contains(p, other[0])
}

// digest returns a digest of the parts and of where each one ends.
func digest(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		sum := sha256.Sum256([]byte(part))
		h.Write(sum[:]) // a digest cannot fail to be written
	}
	return hex.EncodeToString(h.Sum(nil))
}

// marker matches what marks a block for the cache, with or without a lifetime.
var marker = regexp.MustCompile(`,?"cache_control":\{[^}]*\}`)

// canonical returns the value with everything that counts in it: not cache_control, and not the
// order of keys unless KeyOrder says so.
func (s Strict) canonical(raw json.RawMessage) string {
	if s.KeyOrder {
		var out bytes.Buffer
		if json.Compact(&out, raw) != nil {
			return string(raw)
		}
		return strings.ReplaceAll(marker.ReplaceAllString(out.String(), ""), "{,", "{")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return string(raw)
	}
	out, err := json.Marshal(withoutMarkers(value))
	if err != nil {
		return string(raw)
	}
	return string(out)
}

// withoutMarkers removes cache_control from the blocks in the value.
func withoutMarkers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		delete(v, "cache_control")
		withoutMarkers(v["content"]) // of a tool's result
	case []any:
		for _, item := range v {
			withoutMarkers(item)
		}
	}
	return value
}
