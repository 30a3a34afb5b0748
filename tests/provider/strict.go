package provider

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"bobbin/app/core/llm"
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

// Beta features of Anthropic that change tools in a conversation: the first one by reference, the
// second one by definition.
const (
	betaToolChanges = "mid-conversation-tool-changes-2026-07-01"
	betaInlineTools = "inline-tools-2026-09-15"
)

// toolChange is a block of a system message that adds or removes a tool.
type toolChange struct {
	Type string `json:"type"`
	Tool struct {
		Type       string          `json:"type"` // tool_reference or tool_definition
		Name       string          `json:"name"`
		Definition json.RawMessage `json:"definition"`
	} `json:"tool"`
}

// toolDefinition is a tool in Anthropic's form.
type toolDefinition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// isToolChange reports whether a block adds or removes a tool.
func isToolChange(kind string) bool { return kind == "tool_addition" || kind == "tool_removal" }

// checkToolChange refuses a change of the tools where Anthropic does.
//
// The rules are those of anthropic-sdk-go v1.84.0 (BetaRequestToolAdditionBlockParam and its likes, AddTools of
// its tool runner): a reference names a tool of `tools`, or with inline-tools one that was defined before; a
// definition takes the place of an earlier one of that name; both are offered from there on. Assumed: either
// beta allows a removal; what is removed was offered; without the betas the blocks are not known.
func (c *conversation) checkToolChange(path string, raw json.RawMessage) *refusal {
	var change toolChange
	var defined toolDefinition
	_ = json.Unmarshal(raw, &change) // what has another form is refused below
	_ = json.Unmarshal(change.Tool.Definition, &defined)
	isDefinition, name := change.Tool.Type == "tool_definition", change.Tool.Name
	if isDefinition {
		name = defined.Name
	}
	tool := Tool{Name: name, Description: defined.Description, Parameters: defined.InputSchema}
	isKnown := slices.ContainsFunc(c.known, func(t Tool) bool { return t.Name == name })
	switch {
	case c.v.RefusesToolChanges || !c.has(betaInlineTools) && (isDefinition || !c.has(betaToolChanges)):
		return refusef("%s: Input tag '%s' found using 'type' does not match any of the expected tags: 'redacted_thinking', 'text', 'thinking', 'tool_result', 'tool_use'", path, change.Type)
	case name == "" || isDefinition && len(defined.InputSchema) == 0:
		return refusef("%s.tool: Field required", path)
	case change.Type == "tool_removal" && (isDefinition || !c.isOffered(name)):
		return refusef("%s.tool: there is no tool '%s' to remove", path, name)
	case !isDefinition && !isKnown:
		return refusef("%s.tool: the tool '%s' is not defined", path, name)
	}
	if i := slices.IndexFunc(c.known, func(t Tool) bool { return t.Name == name }); !isDefinition {
		tool = c.known[i]
	}
	c.known = replaceTool(c.known, tool)
	if c.offered = replaceTool(c.offered, tool); change.Type == "tool_removal" {
		c.offered = c.offered[:len(c.offered)-1]
	}
	return nil
}

// isOffered reports whether the model may call the tool.
func (c *conversation) isOffered(name string) bool {
	return slices.ContainsFunc(c.offered, func(t Tool) bool { return t.Name == name })
}

// replaceTool returns the tools with one at the end, in place of one of that name.
func replaceTool(tools []Tool, tool Tool) []Tool {
	return append(slices.DeleteFunc(slices.Clone(tools), func(t Tool) bool { return t.Name == tool.Name }), tool)
}

// setTools sets the tools that the request begins with.
func (c *conversation) setTools() {
	for _, raw := range c.req.Tools {
		var t toolDefinition
		if json.Unmarshal(raw.RawMessage, &t) != nil {
			continue // a tool of the server
		}
		c.known = append(c.known, Tool{t.Name, t.Description, t.InputSchema})
		if !raw.Defer {
			c.offered = append(c.offered, c.known[len(c.known)-1])
		}
	}
}

// checkAdditionalTools refuses an item that adds tools where OpenAI does, and adds them.
//
// The form is that of openai-go v3.98.0 (ResponseInputItemAdditionalToolsParam): "A list of additional tools made
// available at this item. Only `developer` is supported." Assumed: a name is free only once.
func (r *Responses) checkAdditionalTools(i int, raw json.RawMessage) error {
	var added struct {
		Role  string `json:"role"`
		Tools []Tool `json:"tools"`
	}
	param := fmt.Sprintf("input[%d]", i)
	switch err := json.Unmarshal(raw, &added); {
	case r.strict.RefusesToolChanges:
		return &ResponsesError{Message: "Invalid value: 'additional_tools'. Supported values are: 'message', 'reasoning', 'function_call' and 'function_call_output'.", Param: param + ".type", Code: "invalid_value"}
	case err != nil:
		return &ResponsesError{Message: err.Error(), Param: param, Code: "invalid_type"}
	case added.Role != "developer":
		return &ResponsesError{Message: "Invalid value for role: only 'developer' is supported.", Param: param + ".role", Code: "invalid_value"}
	case len(added.Tools) == 0:
		return &ResponsesError{Message: "Missing required parameter.", Param: param + ".tools", Code: "missing_required_parameter"}
	}
	for _, tool := range added.Tools {
		if slices.ContainsFunc(r.offered, func(t Tool) bool { return t.Name == tool.Name }) {
			return &ResponsesError{Message: fmt.Sprintf("Duplicate tool name '%s'.", tool.Name), Param: param + ".tools", Code: "invalid_value"}
		}
		r.offered = append(r.offered, tool)
	}
	return nil
}

// namedTool returns the last of the tools that the text names, otherwise another.
func namedTool(tools []Tool, text, otherwise string) string {
	words := strings.Fields(text)
	for _, t := range slices.Backward(tools) {
		if slices.Contains(words, t.Name) {
			return t.Name
		}
	}
	return otherwise
}

// checkSystem refuses a system message among the others where Anthropic does.
//
// The rules are those of platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages,
// as excerpts and other clients report them (2026-11): it directly follows a message of the user, and is the last one or precedes one of
// the assistant; it has nothing but text and changes of the tools. Assumed: all models with preserved thinking take it, and of
// the others, which the page lists, none here.
func (c *conversation) checkSystem(i int) *refusal {
	messages := c.req.Messages
	if messages[i].Role != "system" {
		return nil
	}
	path := fmt.Sprintf("messages.%d", i)
	switch {
	case !llm.PrefixContractOf(c.req.Model).Binds():
		return refusef("%s: role 'system' is not supported on this model", path)
	case i == 0 || messages[i-1].Role != "user":
		return refusef("%s: a message with role 'system' must directly follow a message with role 'user'", path)
	case i < len(messages)-1 && messages[i+1].Role != "assistant":
		return refusef("%s: a message with role 'system' must be the last or precede one with role 'assistant'", path)
	}
	for j, raw := range messages[i].Content {
		at := fmt.Sprintf("%s.content.%d", path, j)
		switch kind := decoded(raw).Type; {
		case isToolChange(kind):
			if r := c.checkToolChange(at, raw); r != nil {
				return r
			}
		case kind != "text":
			return refusef("%s: a message with role 'system' cannot have a block of type %s", at, kind)
		}
	}
	return nil
}
