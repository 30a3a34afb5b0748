package llm

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"bobbin/app/core"
)

// Defaults is what a Registry knows besides its entries.
type Defaults struct {
	// Model is what an empty name stands for.
	Model string
	// Env reads an environment variable; it must not be nil.
	Env func(string) string
	// Lookup knows models by the name that their provider gives them: the window
	// and the longest answer in tokens, and the prior factor (see Info). It must
	// not be nil, and returns a cautious size for an unknown name.
	Lookup func(model string) (window, maxOutput int, factor float64, known bool)
	// Unknown is called when a model is opened whose window had to be assumed; nil = it
	// is not.
	Unknown func(model string, window int)
	// Images reports by the same name whether a model sees images; nil = none does.
	Images func(model string) bool
	// Documents returns by the same name which PDFs a model gets as files at its
	// provider's own address; nil = none.
	Documents func(model string) Documents
}

// DefaultOllamaWindow is the context length with which Ollama runs a model on
// most machines unless OLLAMA_CONTEXT_LENGTH says otherwise. It cuts longer
// prompts silently, whatever the model could do, and its OpenAI endpoint cannot
// ask for more.
const DefaultOllamaWindow = 4_096

// Registry finds the Model that a name stands for. Models are opened when they
// are first asked for and then kept. Safe for concurrent use.
type Registry struct {
	entries  map[string]Entry
	open     func(Entry) (Model, error)
	defaults Defaults

	mu     sync.Mutex
	models map[string]Model // guarded by mu

	resolved sync.Map // Resolve's entries by their names
}

// NewRegistry returns a registry of the configured entries. It calls open once
// for each model that is used, with every field of the Entry filled in; open
// must not wait for the network. Two entries of one name, or one without a name,
// are refused with core.ErrInvalid.
func NewRegistry(entries []Entry, open func(Entry) (Model, error), defaults Defaults) (*Registry, error) {
	r := &Registry{entries: map[string]Entry{}, open: open, defaults: defaults, models: map[string]Model{}}
	for i, e := range entries {
		if e.Name == "" {
			return nil, core.Errorf(core.ErrInvalid, "models[%d] has no name", i)
		}
		if _, ok := r.entries[e.Name]; ok {
			return nil, core.Errorf(core.ErrInvalid, "two models are called %s", e.Name)
		}
		r.entries[e.Name] = e
	}
	return r, nil
}

// Get returns the model of the name: a configured entry, else "demo", else
// provider/model, else a model whose provider follows from its name; an empty name is
// the default model. A name that stands for nothing is core.ErrNotFound, one
// whose key is missing core.ErrInvalid; both messages say what the operator has to do. Names and
// errors are for settings: callers of the API choose from an Offer.
func (r *Registry) Get(name string) (Model, error) {
	name = cmp.Or(name, r.defaults.Model)
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, ok := r.models[name]; ok {
		return m, nil
	}
	entry, err := r.Resolve(name)
	if err != nil {
		return nil, err
	}
	m, err := r.open(entry)
	if err != nil {
		return nil, err
	}
	r.models[name] = m
	if entry.WindowFrom == WindowAssumed && r.defaults.Unknown != nil {
		r.defaults.Unknown(entry.Model, entry.Window)
	}
	return m, nil
}

// Describe returns what the model of the name is, also of one whose key is missing; then the
// error is that of Get, too. Info is empty for a name that stands for nothing.
func (r *Registry) Describe(name string) (Info, error) {
	m, err := r.Get(name)
	if err == nil {
		return m.Info(), nil
	}
	entry, _ := r.Locate(cmp.Or(name, r.defaults.Model)) // its error is that of Get
	if entry.Provider == "" {
		return Info{}, err
	}
	if m, failure := r.open(r.withSizes(entry)); failure == nil {
		return m.Info(), err
	}
	return Info{}, err
}

// Resolve returns the entry that a name stands for, filled in, without opening
// it. Errors are those of Get. An entry that was found once is kept: names come from settings,
// or are offered.
func (r *Registry) Resolve(name string) (Entry, error) {
	known, _ := r.resolved.Load(name)
	if entry, ok := known.(Entry); ok {
		return entry, nil
	}
	entry, err := r.Locate(name)
	if err != nil {
		return Entry{}, err
	}
	entry = r.withSizes(entry)
	r.resolved.Store(name, entry)
	return entry, nil
}

// Locate is Resolve without the sizes, which models that only embed do not have.
func (r *Registry) Locate(name string) (Entry, error) {
	entry, ok := r.entries[name]
	if !ok {
		entry, ok = inferEntry(name)
	}
	if !ok {
		configured := "no models are configured"
		if len(r.entries) > 0 {
			configured = "configured are " + strings.Join(r.Names(), ", ")
		}
		return Entry{}, core.Errorf(core.ErrNotFound, "model %q is not known: %s. Add an entry to models in bobbin.yaml, "+
			"write provider/model (openai/gpt-4o, anthropic/claude-sonnet-5-5, gemini/gemini-flash-latest, ollama/llama3.2, mistral/…, openrouter/…, bedrock/anthropic.claude-opus-5, vertex/claude-opus-5, langchain/ollama/…), or use demo", name, configured)
	}
	return entry.withEnvironment(r.defaults.Env)
}

// Preference is which model does the work beside a conversation, such as summaries,
// if the settings name none for it.
type Preference string

// The preferences. Where there is no such model the conversation's own does the work.
const (
	PreferOwn     Preference = ""        // the conversation's own model
	PreferDefault Preference = "default" // the default model, if it is of the same provider
	PreferSmall   Preference = "small"   // the provider's small model, if the operator named it
)

// CheapModel returns the name of a provider's small model for work on the side,
// such as summaries; empty for a provider without one that every user may call.
func CheapModel(provider string) string {
	return map[string]string{ProviderOpenAI: DefaultOpenAIModel, ProviderAnthropic: DefaultAnthropicModel, ProviderGemini: DefaultGeminiModel}[provider]
}

// Preferred returns the model that does the work beside conversations with the named
// one, and false if that model does it itself. It is a model that the operator named, in
// an entry or as the default, of the same provider, at the same address and with the same
// key: a conversation is sent only to providers that were named for it.
func (r *Registry) Preferred(name string, p Preference) (Model, bool) {
	own, err := r.Resolve(cmp.Or(name, r.defaults.Model))
	if err != nil || p == PreferOwn {
		return nil, false
	}
	small := CheapModel(own.Provider)
	for _, candidate := range append([]string{r.defaults.Model}, r.Names()...) {
		other, err := r.Resolve(candidate)
		if err != nil || other.Provider != own.Provider || other.BaseURL != own.BaseURL || other.APIKeyEnv != own.APIKeyEnv {
			continue
		}
		if p == PreferDefault && candidate == r.defaults.Model || p == PreferSmall && other.Model == small {
			m, err := r.Get(candidate)
			return m, err == nil
		}
	}
	return nil, false
}

// Names returns the configured names, sorted.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.entries)) }

// withSizes fills in the sizes that are not configured.
func (r *Registry) withSizes(e Entry) Entry {
	if e.Provider == ProviderDemo {
		return e // it knows itself
	}
	window, maxOutput, factor, known := r.defaults.Lookup(e.Model)
	if isOllama(e.Provider) {
		length, err := strconv.Atoi(r.defaults.Env("OLLAMA_CONTEXT_LENGTH"))
		if err != nil || length <= 0 {
			length = DefaultOllamaWindow
		}
		window = min(window, length)
	}
	switch {
	case e.Window > 0:
		e.WindowFrom = WindowConfigured
	case known:
		e.Window, e.WindowFrom = window, WindowKnown
	default:
		e.Window, e.WindowFrom = window, WindowAssumed
	}
	e.MaxOutput, e.PriorFactor = cmp.Or(e.MaxOutput, maxOutput), cmp.Or(e.PriorFactor, factor)
	if e.mayBeSlow() { // what calls it has a limit
		e.FirstByteTime, e.IdleTime = cmp.Or(e.FirstByteTime, -1), cmp.Or(e.IdleTime, -1)
	}
	if e.Prefix == "" {
		e.Prefix = PrefixContractOf(e.Model)
	}
	if e.SeesImages != nil {
		e.Images = *e.SeesImages
	} else if r.defaults.Images != nil {
		e.Images = r.defaults.Images(e.Model)
	}
	// A model that sees images is known to take PDFs at the own address of a provider that documents it. Servers that
	// speak the same dialect may refuse them.
	documented := (e.Provider == ProviderOpenAI || e.Provider == ProviderAnthropic) && e.BaseURL == ""
	if e.Documents == "" && documented && e.Images && r.defaults.Documents != nil {
		e.Documents = r.defaults.Documents(e.Model)
	}
	return e
}

// Offer is the models of a Registry that callers of the API may choose: its entries,
// its default, and further names. A name that only looks like that of a provider's
// model is not offered. Safe for concurrent use.
type Offer struct {
	registry *Registry
	more     func() []string
}

// Offer returns the models that callers may choose: what more returns, besides the
// entries and the default.
func (r *Registry) Offer(more func() []string) *Offer { return &Offer{registry: r, more: more} }

// Get returns the model of a name that is offered, or the default model for an empty
// name. Others are core.ErrNotFound. No error shows the server's configuration.
func (o *Offer) Get(name string) (Model, error) {
	if name != "" {
		if names := o.offeredNames(); !slices.Contains(names, name) {
			return nil, core.Errorf(core.ErrNotFound, "%q is not a model of this server; the models are %s",
				core.Clip(name, 100), strings.Join(names, ", "))
		}
	}
	m, err := o.registry.Get(name)
	if err != nil {
		return nil, HideCause(name, err)
	}
	return m, nil
}

// List returns the models that are offered and can be used, sorted by name. The default is the
// one of that name; empty = the default model.
func (o *Offer) List(preferred string) []core.ModelChoice {
	preferred = cmp.Or(preferred, o.registry.defaults.Model)
	choices := []core.ModelChoice{}
	for _, name := range o.offeredNames() {
		if m, err := o.registry.Get(name); err == nil {
			info := m.Info()
			choices = append(choices, core.ModelChoice{Name: name, Provider: info.Provider, Window: info.Window, Images: info.Images, Default: name == preferred})
		}
	}
	return choices
}

// offeredNames returns the names that are offered, sorted.
func (o *Offer) offeredNames() []string {
	names := slices.Concat(o.more(), o.registry.Names(), []string{o.registry.defaults.Model})
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	slices.Sort(names)
	return slices.Compact(names)
}

// HideCause returns the error of Registry.Get as callers of the API may see it: with
// its kind and without the names of environment variables and settings.
func HideCause(name string, err error) error {
	shown, ok := errors.AsType[*core.Error](err)
	if !ok {
		return err
	}
	which := "the default model"
	if name != "" {
		which = fmt.Sprintf("the model %q", core.Clip(name, 100))
	}
	return &core.Error{Kind: shown.Kind, Err: err,
		Message: which + " cannot be used: choose another one, or ask the operator, who finds the reason with: bobbin doctor"}
}
