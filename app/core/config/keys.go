package config

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"sync"

	"bobbin/app/core"
	"bobbin/docs"
)

// Key is something that can be set.
type Key struct {
	Name    string // as in bobbin.yaml, with dots: limits.run_time
	Default string // as config show prints it
	Meaning string // a sentence, in Markdown, as docs/CONFIGURATION.md has it
	Open    bool   // a bobbin.yaml that nobody named may set it, within bounds
	Words   string // that it may be, separated by commas; empty = any

	index    []int // of the field in Config
	flagless bool
}

// Env returns the environment variable that sets the key.
func (k Key) Env() string { return "BOBBIN_" + strings.ToUpper(strings.ReplaceAll(k.Name, ".", "_")) }

// Flag returns the command line flag that sets the key, without the dashes; empty
// for keys that have none: API keys, as other users of the machine can read a
// command line, and what is too long for one.
func (k Key) Flag() string {
	if k.flagless {
		return ""
	}
	return strings.NewReplacer(".", "-", "_", "-").Replace(k.Name)
}

// Keys returns everything that can be set, in the order of the documentation: the fields of Config and its
// sections with the tag key. Their other tags are flag ("-" = it has none), shown, which is documented in the place of the
// default, and those of checkTags.
func Keys() []Key { return keys() }

//nolint:gochecknoglobals // immutable
var keys = sync.OnceValue(func() []Key {
	meanings := map[string]string{} // the last column of the tables of docs/CONFIGURATION.md by the first
	for line := range strings.Lines(docs.Configuration) {
		if cells := strings.Split(strings.TrimSpace(line), " | "); strings.HasPrefix(line, "| `") {
			meanings[strings.Trim(cells[0], "| `")] = strings.TrimSuffix(cells[len(cells)-1], " |")
		}
	}
	defaults, list := Default(), appendKeys(nil, reflect.TypeFor[Config](), "", nil)
	for i, k := range list {
		list[i].Default, list[i].Meaning, list[i].Open = cmp.Or(k.Default, displayValue(k.field(&defaults))), meanings[k.Name], isOpen(k.Name)
	}
	return list
})

// Changed returns the settings that are not as by default, as people read them, secrets
// masked, by their keys.
func (c Config) Changed() map[string]string {
	defaults := Default()
	changed := map[string]string{}
	for _, s := range keys() {
		if value := displayValue(s.field(&c)); value != displayValue(s.field(&defaults)) {
			changed[s.Name] = value
		}
	}
	return changed
}

func appendKeys(list []Key, section reflect.Type, prefix string, index []int) []Key {
	for f := range section.Fields() {
		name, at := prefix+f.Tag.Get("key"), append(slices.Clone(index), f.Index...)
		if f.Type.Kind() == reflect.Struct && f.Type != reflect.TypeFor[Secret]() {
			list = appendKeys(list, f.Type, name+".", at)
			continue
		}
		list = append(list, Key{Name: name, Default: f.Tag.Get("shown"), Words: f.Tag.Get("words"), index: at, flagless: f.Tag.Get("flag") == "-"})
	}
	return list
}

// field returns a pointer to the value.
func (k Key) field(c *Config) any {
	return reflect.ValueOf(c).Elem().FieldByIndex(k.index).Addr().Interface()
}

func settingNames() []string {
	var names []string
	for _, s := range keys() {
		names = append(names, s.Name)
	}
	return names
}

// Variables of the command line, which are no settings of a server.
const (
	URLVariable = "BOBBIN_URL" // the server that commands talk to
	KeyVariable = "BOBBIN_KEY" // the API key that they send
)

// CheckEnvironment returns a warning for each variable of the environment (as os.Environ
// returns it) that looks like a setting and is none. Those of tests are left out.
func CheckEnvironment(environ []string) []string {
	known := []string{FileVariable, URLVariable, KeyVariable}
	for _, k := range Keys() {
		known = append(known, k.Env())
	}
	var warnings []string
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "BOBBIN_") || strings.HasPrefix(name, "BOBBIN_TEST_") || slices.Contains(known, name) {
			continue
		}
		warnings = append(warnings, "the environment variable "+name+" is no setting; "+core.Suggest(name, known, "", "docs/CONFIGURATION.md lists them"))
	}
	slices.Sort(warnings)
	return warnings
}
