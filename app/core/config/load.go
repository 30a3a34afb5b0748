package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"
)

// Options say where settings come from. The zero value is what a program uses that
// has no flags.
type Options struct {
	// File is the configuration file and must exist. Empty = the variable
	// BOBBIN_CONFIG, else bobbin.yaml in Dir, else in UserDir/bobbin; it need not be
	// there. That in Dir may set openKeys only.
	File    string
	Dir     string                   // the working directory; empty = "."
	UserDir string                   // the user's configuration directory; empty = os.UserConfigDir()
	Env     func(name string) string // reads an environment variable; nil = os.Getenv. An empty variable is none
	Flags   map[string]string        // values of the flags that were given, by key
}

// FileVariable is the environment variable that names the configuration file.
const FileVariable = "BOBBIN_CONFIG"

func (o Options) withDefaults() Options {
	if o.Env == nil {
		o.Env = os.Getenv
	}
	o.File = cmp.Or(o.File, o.Env(FileVariable))
	o.Dir = cmp.Or(o.Dir, ".")
	return o
}

// Origin says what a key is and where that comes from.
type Origin struct {
	Key   string `json:"key"`
	Value string `json:"value"` // as people read it, secrets masked
	From  string `json:"from"`  // default, file and line, environment variable, or flag
}

// fromDefault is the Origin.From of a key that nobody set.
const fromDefault = "default"

// Origins are the origins of all keys, in the order of Keys.
type Origins []Origin

// Of returns the origin of the key; the zero Origin if there is no such key.
func (o Origins) Of(key string) Origin {
	for _, origin := range o {
		if origin.Key == key {
			return origin
		}
	}
	return Origin{}
}

// File returns the configuration file that sets something; empty if none does.
func (o Origins) File() string {
	for _, origin := range o {
		if at := lineNumber.FindStringIndex(origin.From); at != nil {
			return origin.From[:at[0]]
		}
	}
	return ""
}

// lineNumber is how the origin of a setting in a file ends.
var lineNumber = regexp.MustCompile(`:\d+$`)

// Set reports whether somebody set the key.
func (o Origins) Set(key string) bool {
	from := o.Of(key).From
	return from != "" && from != fromDefault
}

// Load reads the settings. The error joins everything that is wrong, a *Fault
// each; with it the Config must not be used, but the Origins can be shown.
func Load(opts Options) (Config, Origins, error) {
	opts = opts.withDefaults()
	path, named, err := findFile(opts)
	if err != nil {
		return Config{}, nil, err
	}
	read := &file{}
	if path != "" {
		if read, err = readFile(path); err != nil {
			return Config{}, nil, err
		}
	}
	read.named = named
	l := layers{opts: opts, file: read, values: viper.New(), from: map[string]string{}}
	config := Default()
	var found []error
	for _, key := range keys() { // a later value takes the place of an earlier one
		if raw, ok := l.file.values[key.Name]; ok {
			l.setKey(key.Name, raw, l.file.keyLocation(key.Name))
		}
		if raw := l.opts.Env(key.Env()); raw != "" {
			l.setKey(key.Name, raw, key.Env())
		}
		if raw, ok := l.opts.Flags[key.Name]; ok && key.Flag() != "" {
			l.setKey(key.Name, raw, "--"+key.Flag())
		}
		if l.from[key.Name] == "" {
			continue
		}
		for _, f := range decodeValue(l.values, key.Name, key.field(&config)) {
			f.Where = l.keyLocation(f.Key)
			found = append(found, f)
		}
	}
	for key := range l.opts.Flags {
		if !isSetting(key) {
			read.faults = append(read.faults, &Fault{Where: "--" + Key{Name: key}.Flag(), Key: key, Problem: unknownKey(key, settingNames())})
		}
	}
	found = append(read.faults, found...)
	if l.from["database.url"] == "" {
		config.Database.URL = config.embeddedURL()
	}
	if l.from["auth.required"] == "" {
		_, _, err := net.SplitHostPort(config.Addr) // a wrong address is a fault of its own
		config.Auth.Required = err == nil && !config.Loopback()
	}
	unreadable := faultsOf("", errors.Join(found...)) // these keys have their default now: no second fault
	for _, f := range faultsOf("", config.Validate()) {
		if !slices.ContainsFunc(unreadable, func(u *Fault) bool {
			return strings.HasPrefix(f.Key+".", u.Key+".") || strings.HasPrefix(u.Key, f.Key+".")
		}) {
			f.Where = l.keyLocation(f.Key)
			found = append(found, f)
		}
	}
	found = append(found, l.checkUnnamed(&config)...)
	found = append(found, l.checkDefaultFolders(&config)...)
	return config, l.keyOrigins(&config), errors.Join(found...)
}

// layers puts the sources over each other.
type layers struct {
	opts   Options
	file   *file
	values *viper.Viper      // raw values of the keys that are set anywhere
	from   map[string]string // where a key is set; none = nowhere
}

func (l *layers) setKey(key string, raw any, from string) {
	l.values.Set(key, raw)
	l.from[key] = from
}

// keyLocation returns where the key, or the key that it is part of, is set; "" if
// nowhere.
func (l *layers) keyLocation(key string) string {
	for name, from := range l.from {
		if key != name && !strings.HasPrefix(key, name+"[") {
			continue
		}
		if _, ok := l.file.values[name]; ok && from == l.file.keyLocation(name) {
			return l.file.keyLocation(key)
		}
		return from
	}
	return ""
}

// keyOrigins returns the origins of all keys.
func (l *layers) keyOrigins(config *Config) Origins {
	var list Origins
	for _, s := range keys() {
		list = append(list, Origin{Key: s.Name, Value: displayValue(s.field(config)), From: cmp.Or(l.from[s.Name], fromDefault)})
	}
	return list
}

// Fault is one thing that is wrong with the settings.
type Fault struct {
	Where   string // file and line, environment variable, or flag; empty = not known
	Key     string // such as limits.run_time or models[1].provider
	Problem string // what is wrong and what to do
	unnamed string // the file, if it must not set the key because nobody named it
}

// Error returns the fault in one line.
func (f *Fault) Error() string {
	text := f.Key + ": " + f.Problem
	if f.Where != "" {
		text = f.Where + ": " + text
	}
	return text
}

// faults gathers what is wrong.
type faults []error

// addFault notes a fault of the key.
func (fs *faults) addFault(key, format string, args ...any) {
	*fs = append(*fs, &Fault{Key: key, Problem: fmt.Sprintf(format, args...)})
}

// checkKey notes a fault of the key unless ok.
func (fs *faults) checkKey(ok bool, key, format string, args ...any) {
	if !ok {
		fs.addFault(key, format, args...)
	}
}

// faultsOf returns the faults in err: itself, or what is joined in it. An error
// that is none becomes one of the key.
func faultsOf(key string, err error) []*Fault {
	if err == nil {
		return nil
	}
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		var list []*Fault
		for _, e := range joined.Unwrap() {
			list = append(list, faultsOf(key, e)...)
		}
		return list
	}
	var f *Fault
	if errors.As(err, &f) {
		return []*Fault{f}
	}
	var at *mapstructure.DecodeError // of an entry of a list
	if errors.As(err, &at) {
		return faultsOf(key+at.Name(), at.Unwrap())
	}
	return []*Fault{{Key: key, Problem: err.Error()}}
}
