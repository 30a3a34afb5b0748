package config

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"bobbin/docs"
)

// Key is something that can be set.
type Key struct {
	Name    string // as in bobbin.yaml, with dots: limits.run_time
	Default string // as config show prints it
	Meaning string // a sentence, in Markdown, as docs/CONFIGURATION.md has it
	Open    bool   // a bobbin.yaml that nobody named may set it, within bounds
	Words   string // that it may be, separated by commas; empty = any

	flagless bool
}

// Env returns the environment variable that sets the key.
func (k Key) Env() string {
	return "BOBBIN_" + strings.ToUpper(strings.ReplaceAll(k.Name, ".", "_"))
}

// Flag returns the command line flag that sets the key, without the dashes; empty
// for keys that have none: API keys, as other users of the machine can read a
// command line, and what is too long for one.
func (k Key) Flag() string {
	if k.flagless {
		return ""
	}
	return strings.NewReplacer(".", "-", "_", "-").Replace(k.Name)
}

// Keys returns everything that can be set, in the order of the documentation.
func Keys() []Key {
	defaults := Default()
	var keys []Key
	for _, s := range settings() {
		k := Key{Name: s.name, Default: s.shown, Meaning: meanings()[s.name], Open: isOpen(s.name), Words: s.words, flagless: s.flagless}
		if k.Default == "" {
			k.Default = displayValue(s.field(&defaults))
		}
		keys = append(keys, k)
	}
	return keys
}

// meanings returns the last column of the tables of docs/CONFIGURATION.md by the first.
//
//nolint:gochecknoglobals // immutable
var meanings = sync.OnceValue(func() map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(docs.Configuration) {
		if cells := strings.Split(strings.TrimSpace(line), " | "); strings.HasPrefix(line, "| `") {
			found[strings.Trim(cells[0], "| `")] = strings.TrimSuffix(cells[len(cells)-1], " |")
		}
	}
	return found
})

// Changed returns the settings that are not as by default, as people read them, secrets
// masked, by their keys.
func (c Config) Changed() map[string]string {
	defaults := Default()
	changed := map[string]string{}
	for _, s := range settings() {
		if value := displayValue(s.field(&c)); value != displayValue(s.field(&defaults)) {
			changed[s.name] = value
		}
	}
	return changed
}

// setting is a field of Config and its sections with the tag key. Its other tags are flag ("-" =
// it has none), shown, which is documented in the place of the default, and those of checkTags.
type setting struct {
	name     string
	index    []int // of the field in Config
	shown    string
	words    string
	flagless bool
}

// settings returns the keys: what is not among them cannot be set.
//
//nolint:gochecknoglobals // immutable
var settings = sync.OnceValue(func() []setting { return appendSettings(nil, reflect.TypeFor[Config](), "", nil) })

func appendSettings(list []setting, section reflect.Type, prefix string, index []int) []setting {
	for f := range section.Fields() {
		name, at := prefix+f.Tag.Get("key"), append(slices.Clone(index), f.Index...)
		if f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[Secret]() {
			list = appendSettings(list, f.Type, name+".", at)
			continue
		}
		list = append(list, setting{name, at, f.Tag.Get("shown"), f.Tag.Get("words"), f.Tag.Get("flag") == "-"})
	}
	return list
}

// field returns a pointer to the value.
func (s setting) field(c *Config) any {
	return reflect.ValueOf(c).Elem().FieldByIndex(s.index).Addr().Interface()
}

func settingNames() []string {
	var names []string
	for _, s := range settings() {
		names = append(names, s.name)
	}
	return names
}
