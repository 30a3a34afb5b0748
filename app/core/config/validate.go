package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"bobbin/app/core"
)

// Validate returns everything that is wrong with the settings, joined, a *Fault
// each; nil if nothing is.
func (c Config) Validate() error {
	var found faults
	found.checkTags(reflect.ValueOf(&c).Elem(), "")
	c.validateAddr(&found)
	found.checkKey(strings.TrimSpace(c.DataDir) != "", "data_dir", "it is empty; name a folder, such as ./bobbin-data")
	found.checkKey(strings.TrimSpace(c.AgentsDir) != "", "agents_dir", "it is empty; name a folder, such as agents (it need not exist)")
	scheme, rest, _ := strings.Cut(c.Database.URL.Reveal(), "://")
	switch scheme {
	case "sqlite":
		found.checkKey(rest != "", "database.url", "the path is missing; write for example sqlite://bobbin-data/bobbin.db")
	case "postgres", "postgresql":
		_, err := url.Parse(c.Database.URL.Reveal()) // its error would show the password
		found.checkKey(err == nil, "database.url", "it cannot be read; write for example postgres://user:password@host:5432/name, special characters in the password as %%40")
	default:
		found.addFault("database.url", "it must begin with sqlite:// or postgres://, such as sqlite://bobbin-data/bobbin.db")
	}
	c.validateReplicas(&found)
	found.checkKey(isName(c.DefaultAgent), "default_agent", "%q is not an agent's name; use lower-case letters, digits, - and _", c.DefaultAgent)
	names := map[string]int{}
	for i, m := range c.Models {
		at := fmt.Sprintf("models[%d].", i)
		if first, twice := names[m.Name]; twice && m.Name != "" {
			found.addFault(at+"name", "%q is the name of models[%d] too; choose another", m.Name, first)
		}
		names[m.Name] = i
		m.validate(at, &found)
	}
	// Whether there are keys for a server that other machines reach is seen when it starts: keys may be
	// in the database.
	owners := map[[sha256.Size]byte]string{}
	for i, k := range c.Auth.Keys {
		at := fmt.Sprintf("auth.keys[%d]", i)
		found.checkKey(ValidKeyName(k.Name), at, "the name %q must be 1 to 64 letters, digits, and . _ @ -", k.Name)
		if k.Secret.Empty() {
			found.addFault(at, "the secret of %q is missing; write name:secret", k.Name)
			continue
		}
		sum, ok := k.Sum()
		found.checkKey(ok, at, "the hash of %q is not one: sha256: and 64 hexadecimal digits; bobbin keys new makes it", k.Name)
		if owner, twice := owners[sum]; twice && ok {
			found.addFault(at, "%q has the same secret as %q; every key needs its own", k.Name, owner)
		}
		owners[sum] = k.Name
		if weakness := k.Secret.weakness(); weakness != "" && !k.Hashed() {
			found.addFault(at, "the secret of %q %s: make one with: bobbin keys new %s", k.Name, weakness, k.Name)
		}
	}
	c.Auth.JWT.validate(&found)
	c.Server.validate(c.Auth.Required, &found)
	c.validateSpendLimits(&found)
	c.Tools.validate(&found)
	c.validateMetrics(&found)
	c.Files.validate(&found)
	_, err := core.WebhookKey(c.Webhooks.Secret.Reveal())
	found.checkKey(err == nil, "webhooks.secret", "it is not one; make it by: echo whsec_$(openssl rand -base64 32)")
	c.Slack.validate(&found)
	c.Limits.validate(&found)
	return errors.Join(found...)
}

func (c Config) validateAddr(found *faults) {
	_, port, err := net.SplitHostPort(c.Addr)
	if err != nil {
		found.addFault("addr", "%q is not host:port; write for example 127.0.0.1:8080", c.Addr)
		return
	}
	n, err := strconv.Atoi(port)
	found.checkKey(err == nil && n >= 0 && n <= 65535, "addr", "%q is not a port; use 0 (any that is free) to 65535", port)
}

func (m Model) validate(at string, found *faults) {
	found.checkKey(strings.TrimSpace(m.Name) != "", at+"name", "it is missing; agents call the model by it")
	found.checkKey(m.BaseURL == "" || isAddress(m.BaseURL), at+"base_url", "this is not an address; write for example http://localhost:8000/v1")
	found.checkKey(m.APIKeyEnv == "" || matchesWhole(`[A-Za-z_][A-Za-z0-9_]*`, m.APIKeyEnv), at+"api_key_env",
		"this is not the name of an environment variable; write for example OPENAI_API_KEY, and put the key itself into that variable")
	found.checkKey(m.Provider != "langchain/ollama" || m.Documents == nil || !*m.Documents, at+"documents", "models of provider %s take no PDFs; remove it", m.Provider)
	isOpenAI := m.Provider == "openai" || m.Provider == ""
	isChat := isOpenAI && m.API != APIResponses
	found.checkKey(m.API == "" || isOpenAI, at+"api", "only models of provider openai have one; remove it")
	found.checkKey(m.MaxTokensField == "" || isChat, at+"max_tokens_field", "only models of provider openai with api chat have one; remove it")
	found.checkKey(!m.OpensThought || isChat, at+"prompt_opens_thought", "only models of provider openai with api chat have one; remove it")
	found.checkKey(m.MaxOutputTokens >= 0 && (m.ContextWindow <= 0 || m.MaxOutputTokens <= m.ContextWindow), at+"max_output_tokens",
		"%d must be between 0 and context_window", m.MaxOutputTokens)
	found.checkKey(m.Region == "" || m.Provider == "bedrock" || m.Provider == "vertex", at+"region", "only models of providers bedrock and vertex have one; remove it")
	found.checkKey(m.Project == "" || m.Provider == "vertex", at+"project", "only models of provider vertex have one; remove it")
	if m.ThinkingBudget != 0 {
		found.checkKey(slices.Contains([]string{"anthropic", "bedrock", "vertex", ""}, m.Provider), at+"thinking_budget", "only models of providers anthropic, bedrock and vertex have one; remove it")
		found.checkKey(m.MaxOutputTokens == 0 || m.ThinkingBudget <= m.MaxOutputTokens-leastThinking, at+"thinking_budget",
			"%d leaves too little of max_output_tokens (%d) for the answer; use %d less than that, at most", m.ThinkingBudget, m.MaxOutputTokens, leastThinking)
	}
}

// leastThinking is the smallest budget for thinking that Anthropic takes, in
// tokens; as much is kept for the answer.
const leastThinking = 1024

func (l Limits) validate(found *faults) {
	found.checkKey(l.RequestMemoryBytes == 0 || l.RequestMemoryBytes >= l.BodyBytes, "limits.request_memory_bytes", "%s is less than limits.body_bytes (%s); use more, or 0 for what suits the machine", l.RequestMemoryBytes, l.BodyBytes)
	found.checkKey(l.RequestDiskBytes >= l.ImportBytes, "limits.request_disk_bytes", "%s is less than limits.import_bytes (%s): no history of that size could come in", l.RequestDiskBytes, l.ImportBytes)
	found.checkKey(l.BodyBytes >= l.MessageBytes, "limits.body_bytes", "%s is less than limits.message_bytes (%s): no message of that size could be sent", l.BodyBytes, l.MessageBytes)
}

// checkTags notes the values of a section, and of the entries of its lists, that are not as their tags
// say: words are those that there are, an empty one among them, and for range see checkRange.
func (fs *faults) checkTags(section reflect.Value, prefix string) {
	for f, value := range section.Fields() {
		key := prefix + f.Tag.Get("key")
		if words := f.Tag.Get("words"); words != "" {
			oneOf(fs, key, value.String(), strings.Split(words, ","))
		}
		if span := f.Tag.Get("range"); span != "" {
			fs.checkRange(key, value, span)
		}
		switch {
		case f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[Secret]():
			fs.checkTags(value, key+".")
		case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
			for i := range value.Len() {
				fs.checkTags(value.Index(i), fmt.Sprintf("%s[%d].", key, i))
			}
		}
	}
}

// checkRange notes a number that is not in the span: least..most, or least.. without an upper bound; with
// 0| before it 0 is right as well.
func (fs *faults) checkRange(key string, value reflect.Value, span string) {
	number := func(v reflect.Value) float64 {
		if v.CanInt() {
			return float64(v.Int())
		}
		return v.Float()
	}
	bound := func(text string) float64 {
		converted, _ := convertValue(reflect.ValueOf(text), value) // the tags are right
		return number(reflect.ValueOf(converted))
	}
	n := number(value)
	span, orZero := strings.CutPrefix(span, "0|")
	least, most, _ := strings.Cut(span, "..")
	ok, hint := n >= bound(least), least+" or more"
	if most != "" {
		ok, hint = ok && n <= bound(most), least+" to "+most
	}
	if orZero {
		ok, hint = ok || n == 0, hint+", or 0"
	}
	fs.checkKey(ok, key, "%s is out of range; use %s", displayValue(value.Addr().Interface()), hint)
}

// oneOf notes a fault unless the value is one of the words.
func oneOf(found *faults, key, value string, words []string) {
	if slices.Contains(words, value) {
		return
	}
	words = slices.DeleteFunc(words, func(word string) bool { return word == "" })
	if value == "" {
		found.addFault(key, "it is missing; use one of %s", strings.Join(words, ", "))
		return
	}
	if meant := core.Nearest(value, words); meant != "" {
		found.addFault(key, "%q does not exist; did you mean %s? There are %s", value, meant, strings.Join(words, ", "))
		return
	}
	found.addFault(key, "%q does not exist; use one of %s", value, strings.Join(words, ", "))
}

// isAddress reports whether s is an http or https URL.
func isAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// isName reports whether s can be the name of an agent.
func isName(s string) bool { return matchesWhole(`[a-z0-9][a-z0-9_-]{0,63}`, s) }

// ValidKeyName reports whether s can be the name of an API key: 1 to 64 letters, digits, and . _ @ -.
func ValidKeyName(s string) bool { return matchesWhole(`[A-Za-z0-9._@-]{1,64}`, s) }

// matchesWhole reports whether all of s fits the pattern.
func matchesWhole(pattern, s string) bool {
	return regexp.MustCompile(`^(?:` + pattern + `)$`).MatchString(s)
}
