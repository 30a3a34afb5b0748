package llm

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"slices"
	"strings"

	"bobbin/app/core"
)

// PrefixContract says what a model does with a thought that comes back behind another prompt
// than the one that it was produced behind ("preserved thinking" of Anthropic, "keep the prefix
// unchanged" of OpenAI). The prompt before a thought is its prefix: system blocks, tools and all
// messages, as they were sent.
type PrefixContract string

// The contracts. An empty one is free until the provider's answers show otherwise.
const (
	PrefixFree    PrefixContract = "free"    // it takes the thought
	PrefixDrops   PrefixContract = "drops"   // it leaves the thought out
	PrefixRefuses PrefixContract = "refuses" // it refuses the prompt, unless it is told to leave the thought out
)

// Binds reports whether thoughts are bound to their prefix.
func (c PrefixContract) Binds() bool { return c == PrefixDrops || c == PrefixRefuses }

// AppendsInstructions reports whether what is new in a model's instructions is appended to the
// messages, so that the thoughts so far stay valid.
func (i Info) AppendsInstructions() bool { return i.SystemMessages && i.Prefix.Binds() }

// PrefixContractOf returns the contract of a model by its name; empty if the name does not say.
// Anthropic's page "prefix-checks" lists families and versions; OpenAI's "keep the prefix
// unchanged" names GPT-6.2.
func PrefixContractOf(model string) PrefixContract {
	switch family, version := ClaudeOf(model); family {
	case "fable", "mythos":
		if version.IsSince(5, 1) {
			return PrefixRefuses
		}
	case "opus", "sonnet", "haiku":
		if version.IsSince(5, 5) {
			return PrefixRefuses
		}
	}
	if version, found := strings.CutPrefix(strings.ToLower(model), "gpt-"); found && versionOf(version).IsSince(6, 2) {
		return PrefixDrops
	}
	return ""
}

// WithoutThoughts returns the request without the reasoning in its messages.
func (r Request) WithoutThoughts() Request {
	r.Messages = slices.Clone(r.Messages)
	for i, m := range r.Messages {
		r.Messages[i].Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p core.Part) bool { return p.Type == core.PartReasoning })
	}
	return r
}

// Prefix is a hash of the beginning of a prompt as one model gets it. Prompts with equal system
// blocks, tools and messages have equal prefixes; those of two accounts or models differ.
type Prefix struct{ sum [sha256.Size]byte }

// NewPrefix returns the prefix of a prompt without messages. OpenAI's rules name the answer's
// format and the effort as parts of it, which both may be empty.
func NewPrefix(info Info, system []string, tools []ToolSpec, format *core.ResponseFormat, effort string) Prefix {
	h := fieldHash{}
	h.addText(info.ThoughtOrigin, info.Account)
	for _, block := range system {
		if block != "" { // no adapter sends it
			h.addText(block)
		}
	}
	h.addJSON([]any{tools, format, effort})
	return Prefix{sha256.Sum256(h)}
}

// With returns the prefix that ends with one more message.
func (p Prefix) With(m Message) Prefix {
	h := fieldHash(p.sum[:])
	h.addMessage(m)
	return Prefix{sha256.Sum256(h)}
}

// digestSize is the size of one digest in Digests: 24 bits.
const digestSize = 4

// Digests returns a digest of each part of the prompt, in the order of providers' caches: the tools, the system
// blocks, the messages. They show how far a later prompt begins with the same parts (CountEqual) and protect
// against no forgery.
func (r Request) Digests() string {
	h, digests := fieldHash{}, make([]byte, 0, digestSize*(1+len(r.System)+len(r.Messages)))
	add := func() {
		sum := binary.BigEndian.AppendUint32(nil, crc32.Checksum(h, castagnoli))
		digests, h = base64.RawURLEncoding.AppendEncode(digests, sum[:3]), h[:0]
	}
	h.addJSON(r.Tools)
	add()
	for _, block := range r.System {
		h.addText(block)
		add()
	}
	for _, m := range r.Messages {
		h.addMessage(m)
		add()
	}
	return string(digests)
}

//nolint:gochecknoglobals // a constant table
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CountParts returns how many parts the prompt of the digests has.
func CountParts(digests string) int { return len(digests) / digestSize }

// CountEqual returns how many parts at the beginning of two prompts are equal, by their Digests.
func CountEqual(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n / digestSize
}

// addMessage adds what a model gets of a message.
func (h *fieldHash) addMessage(m Message) {
	h.addText(string(m.Role), PlainText(m), m.ToolCallID)
	for _, part := range m.Parts {
		if part.Type == core.PartCompaction {
			h.addText("compaction", part.Text, part.Signature)
		}
		if part.Type == core.PartReasoning && part.Origin != "" {
			h.addText("thought", part.Name, part.Text, part.Signature)
			*h = binary.AppendUvarint(*h, uint64(part.Offset)) //nolint:gosec // G115: never negative
			*h = binary.AppendUvarint(*h, uint64(part.Calls))  //nolint:gosec // G115: never negative
		}
	}
	for _, media := range m.Media {
		h.addText("media", media.Name, media.MediaType)
		sum := sha256.Sum256(media.Data)
		*h = append(*h, sum[:]...)
	}
	for _, tool := range m.AddedTools {
		h.addText("added")
		h.addJSON(tool)
	}
	for _, name := range m.RemovedTools {
		h.addText("removed", name)
	}
	for _, call := range m.ToolCalls {
		h.addText("call", call.ID, call.Name, call.Arguments, call.Signature)
	}
}

// prefixBytes is how much of the hash is stored with a thought: enough that two prompts of a
// session never share one.
const prefixBytes = 12

// String returns the prefix as it is stored with a thought: 16 characters.
func (p Prefix) String() string { return base64.RawURLEncoding.EncodeToString(p.sum[:prefixBytes]) }

// Encode returns the prefix as a text from which more messages can follow (ParsePrefix).
func (p Prefix) Encode() string { return base64.RawURLEncoding.EncodeToString(p.sum[:]) }

// ParsePrefix returns the prefix that was encoded; false = the text is none.
func ParsePrefix(encoded string) (p Prefix, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	return p, err == nil && copy(p.sum[:], raw) == len(p.sum) && len(raw) == len(p.sum)
}

// fieldHash is what a hash is made of: fields with their lengths, so that none runs into the next.
type fieldHash []byte

func (h *fieldHash) addText(texts ...string) {
	for _, text := range texts {
		*h = append(binary.AppendUvarint(*h, uint64(len(text))), text...)
	}
}

func (h *fieldHash) addJSON(value any) {
	raw, err := json.Marshal(value)
	if err != nil { // parameters that are not JSON: no provider takes them
		raw = []byte(err.Error())
	}
	*h = append(binary.AppendUvarint(*h, uint64(len(raw))), raw...)
}
