package tokens

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// DefaultWindow is the context window of models that nobody knows: small, so that
// a wrong guess cannot make a prompt too large (W9).
const DefaultWindow = 8192

// maxWarned bounds the names that are remembered as warned of; names come from
// callers. After so many there are no more warnings.
const maxWarned = 1000

// ModelInfo says what a model takes.
type ModelInfo struct {
	Name      string  // normalized; every name that begins with it, and has no longer row, is this model
	Window    int     // context window in tokens, prompt and answer together
	MaxOutput int     // most tokens of an answer; 0 = not known
	Factor    float64 // the model's tokens per cl100k_base token, before anything was measured
}

// Models is the table of known models. Safe for concurrent use.
type Models struct {
	rows   []ModelInfo // longest name first
	logger *slog.Logger

	mu     sync.Mutex
	warned map[string]struct{} // guarded by mu
}

// NewModels returns the built-in table, extended by extra. A row of extra replaces
// the built-in one of the same name; fields that it leaves 0 are what the model
// would have without it. Of two rows of extra with one name the last holds.
func NewModels(logger *slog.Logger, extra ...ModelInfo) *Models {
	m := &Models{logger: logger, warned: map[string]struct{}{}, rows: builtin()}
	byLength(m.rows)
	rows := slices.Clone(m.rows)
	for _, e := range extra {
		base, _ := m.Assume(e.Name)
		e = e.over(base)
		rows = slices.DeleteFunc(rows, func(r ModelInfo) bool { return r.Name == e.Name })
		rows = append(rows, e)
	}
	byLength(rows)
	m.rows = rows
	return m
}

// byLength puts the longest name first, so that the first that fits is the one.
func byLength(rows []ModelInfo) {
	slices.SortStableFunc(rows, func(a, b ModelInfo) int { return len(b.Name) - len(a.Name) })
}

// over returns e under its normalized name, with what it leaves 0 from base.
func (e ModelInfo) over(base ModelInfo) ModelInfo {
	e.Name = normalize(e.Name)
	if e.Window == 0 {
		e.Window = base.Window
	}
	if e.MaxOutput == 0 {
		e.MaxOutput = base.MaxOutput
	}
	if e.Factor == 0 {
		e.Factor = base.Factor
	}
	return e
}

// Lookup returns the row with the longest name that the normalized name begins
// with, and false if there is none. Lower case; vendor path, "ft:", region prefix
// and ":tag" do not count; dots and dashes between digits are alike; a date or
// any other suffix is covered by the prefix (W9). A number is never cut:
// "gpt-4-1" (that is gpt-4.1) is not the row of "gpt-4-1106-preview".
func (m *Models) Lookup(name string) (ModelInfo, bool) {
	name = normalize(name)
	for _, row := range m.rows {
		if isPrefix(row.Name, name) {
			return row, true
		}
	}
	return ModelInfo{}, false
}

// Get is Lookup with an answer for every name: one that is not known has a window
// of DefaultWindow, and is logged once.
func (m *Models) Get(name string) ModelInfo {
	row, ok := m.Lookup(name)
	if ok {
		return row
	}
	row, _ = m.Assume(name)
	m.Warn(name, row.Window)
	return row
}

// Warn logs once that nobody knows the model, which window it is taken to have, and
// what to set (W9).
func (m *Models) Warn(name string, window int) {
	if m.first(name) {
		m.logger.Warn("model is not known, its window is taken to be small; set context_window under models",
			"model", name, "window", window)
	}
}

// ContextLimit returns the model's context window in tokens: get_context_limit of
// W9.
func (m *Models) ContextLimit(name string) int { return m.Get(name).Window }

// Factor returns the model's prior factor; 1 for one that is not known.
func (m *Models) Factor(name string) float64 {
	row, _ := m.Assume(name)
	return row.Factor
}

// Assume is Get without the warning; false = the model is not known.
func (m *Models) Assume(name string) (ModelInfo, bool) {
	if row, ok := m.Lookup(name); ok {
		return row, true
	}
	return ModelInfo{Name: normalize(name), Window: DefaultWindow, Factor: 1}, false
}

// first reports whether the name has not been warned of yet.
func (m *Models) first(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.warned[name]; ok || len(m.warned) >= maxWarned {
		return false
	}
	m.warned[name] = struct{}{}
	return true
}

// isPrefix reports whether name begins with prefix and does not go on with a digit
// where prefix ends with one.
func isPrefix(prefix, name string) bool {
	if !strings.HasPrefix(name, prefix) {
		return false
	}
	if len(name) == len(prefix) || prefix == "" {
		return prefix != ""
	}
	return !isDigit(prefix[len(prefix)-1]) || !isDigit(name[len(prefix)])
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// normalize returns the name in the form of the table (W9).
func normalize(name string) string {
	s := strings.ToLower(strings.TrimSpace(name))
	if tuned, ok := strings.CutPrefix(s, "ft:"); ok {
		s, _, _ = strings.Cut(tuned, ":") // what follows names the owner's job
	}
	s = s[strings.LastIndexByte(s, '/')+1:]
	s, _, _ = strings.Cut(s, ":")
	s = cutLabel(s, "us", "us-gov", "eu", "apac", "ap", "au", "ca", "jp", "sa", "global")
	s = cutLabel(s, "ai21", "amazon", "anthropic", "cohere", "deepseek", "google", "meta", "minimax", "mistral", "moonshot", "moonshotai",
		"nvidia", "openai", "qwen", "writer", "xai", "zai")
	b := []byte(s)
	for i := 1; i+1 < len(b); i++ {
		if b[i] == '.' && isDigit(b[i-1]) && isDigit(b[i+1]) {
			b[i] = '-'
		}
	}
	return string(b)
}

// cutLabel removes the first of the labels that s begins with, and its dot: the
// region and the vendor in "us.anthropic.claude-3-5-sonnet-20241022-v2:0".
func cutLabel(s string, labels ...string) string {
	label, rest, ok := strings.Cut(s, ".")
	if ok && slices.Contains(labels, label) {
		return rest
	}
	return s
}
