package llm

import (
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
	// not be nil, and gives something careful for a name that is not known.
	Lookup func(model string) (window, maxOutput int, factor float64, known bool)
	// Unknown is told of a model that is opened and whose window had to be assumed, and
	// of that window; nil = nobody is.
	Unknown func(model string, window int)
	// Images says by the same name whether a model sees images; nil = none does.
	Images func(model string) bool
}

// DefaultOllamaWindow is the context length with which Ollama runs a model on
// most machines unless OLLAMA_CONTEXT_LENGTH says otherwise. It cuts longer
// prompts silently, whatever the model could do, and its OpenAI endpoint cannot
// ask for more.
const DefaultOllamaWindow = 4_096

// maxOpen bounds the models that are kept open: names can come from outside.
const maxOpen = 256

// Registry finds the Model that a name stands for. Models are opened when they
// are first asked for and then kept. Safe for concurrent use.
type Registry struct {
	entries  map[string]Entry
	open     func(Entry) (Model, error)
	defaults Defaults

	mu     sync.Mutex
	models map[string]Model // guarded by mu
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
// provider/model, else a model whose provider its name tells; an empty name is
// the default model. A name that stands for nothing is core.ErrNotFound, one
// whose key is missing core.ErrInvalid; both say what to do.
func (r *Registry) Get(name string) (Model, error) {
	if name == "" {
		name = r.defaults.Model
	}
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
	if len(r.models) >= maxOpen {
		clear(r.models) // whoever uses one goes on using it
	}
	r.models[name] = m
	if entry.WindowFrom == WindowAssumed && r.defaults.Unknown != nil {
		r.defaults.Unknown(entry.Model, entry.Window)
	}
	return m, nil
}

// Resolve returns the entry that a name stands for, filled in, without opening
// it. Errors are those of Get.
func (r *Registry) Resolve(name string) (Entry, error) {
	entry, err := r.Locate(name)
	if err != nil {
		return Entry{}, err
	}
	return r.sized(entry), nil
}

// Locate is Resolve without the sizes, which models that only embed do not have.
func (r *Registry) Locate(name string) (Entry, error) {
	entry, ok := r.entries[name]
	if !ok {
		entry, ok = infer(name)
	}
	if !ok {
		return Entry{}, r.unknown(name)
	}
	return entry.withEnvironment(r.defaults.Env)
}

// Cheap returns the small model of the provider of the named one (CheapModel), and
// false if there is none that can be used. It is at the same address: what is said
// to a server of one's own goes to no other.
func (r *Registry) Cheap(name string) (Model, bool) {
	if name == "" {
		name = r.defaults.Model
	}
	own, err := r.Resolve(name)
	if err != nil {
		return nil, false
	}
	small := CheapModel(own.Provider)
	other, err := r.Resolve(small)
	if small == "" || err != nil || other.Provider != own.Provider || other.BaseURL != own.BaseURL || other.APIKeyEnv != own.APIKeyEnv {
		return nil, false
	}
	m, err := r.Get(small)
	return m, err == nil
}

// Names returns the configured names, sorted.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.entries)) }

// sized fills in the sizes that are not configured.
func (r *Registry) sized(e Entry) Entry {
	if e.Provider == providerDemo {
		return e // it knows itself
	}
	window, maxOutput, factor, known := r.defaults.Lookup(e.Model)
	if e.Provider == providerOllama {
		window = min(window, r.ollamaWindow())
	}
	switch {
	case e.Window > 0:
		e.WindowFrom = WindowConfigured
	case known:
		e.Window, e.WindowFrom = window, WindowKnown
	default:
		e.Window, e.WindowFrom = window, WindowAssumed
	}
	if e.MaxOutput == 0 {
		e.MaxOutput = maxOutput
	}
	if e.PriorFactor == 0 {
		e.PriorFactor = factor
	}
	if e.Images == nil && r.defaults.Images != nil {
		sees := r.defaults.Images(e.Model)
		e.Images = &sees
	}
	return e
}

func (r *Registry) ollamaWindow() int {
	if n, err := strconv.Atoi(r.defaults.Env("OLLAMA_CONTEXT_LENGTH")); err == nil && n > 0 {
		return n
	}
	return DefaultOllamaWindow
}

func (r *Registry) unknown(name string) error {
	configured := "no models are configured"
	if len(r.entries) > 0 {
		configured = "configured are " + strings.Join(r.Names(), ", ")
	}
	return core.Errorf(core.ErrNotFound, "model %q is not known: %s. Add an entry to models in bobbin.yaml, "+
		"write provider/model (openai/gpt-4o, anthropic/claude-sonnet-5-5, gemini/gemini-flash-latest, ollama/llama3.2, mistral/…, openrouter/…), or use demo", name, configured)
}
