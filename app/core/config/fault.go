package config

import (
	"errors"
	"fmt"

	"github.com/go-viper/mapstructure/v2"
)

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
