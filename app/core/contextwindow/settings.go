package contextwindow

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"bobbin/app/core"
)

// Field is one value of a policy and where it comes from.
type Field struct {
	Name  string // as in an agent's file
	Value string
	From  string // agent file, a global setting's name, the preset, or default
}

// Explain returns every value of an agent's policy and loop settings by its path in the agent's file, with
// its origin: preset < global setting < agent file. Errors are those of Resolve and ResolveLoop.
func Explain(global Global, agent core.Agent) ([]Field, error) {
	p, err := Resolve(global, agent.Context)
	if err != nil {
		return nil, err
	}
	l, err := ResolveLoop(p.Name, agent.Compaction)
	if err != nil {
		return nil, err
	}
	from := "default"
	if agent.Context.Policy != "" {
		from = fromAgentFile
	}
	fields := []Field{{Name: "context.policy", Value: p.Name, From: from}}
	fields = append(fields, explainFields("context.", p, agent.Context, func(key string) string {
		switch {
		case key == "usage_threshold" && global.UsageThreshold != nil,
			key == "summary_model" && global.SummaryModel != "",
			key == "summary_role" && global.SummaryRole != "":
			return "context_" + key
		default:
			return "preset " + p.Name
		}
	})...)
	return append(fields, explainFields("compaction.", l, agent.Compaction, func(key string) string {
		if key == "enabled" && p.Name == presetOff {
			return "preset " + p.Name
		}
		return "default"
	})...), nil
}

// fromAgentFile is the origin of values that an agent's file sets.
const fromAgentFile = "agent file"

// explainFields returns the fields with a key, in the order of the agent's file; origin says
// where a value comes from that the file does not set.
func explainFields(section string, values, file any, origin func(key string) string) []Field {
	var fields []Field
	eachKey(values, file, func(key string, value, own reflect.Value) {
		f := Field{Name: section + key, Value: fmt.Sprint(value.Interface()), From: fromAgentFile}
		if own.IsNil() {
			f.From = origin(key)
		}
		fields = append(fields, f)
	})
	return fields
}

// overlayFields sets the fields of *values for which the agent's file has a value.
func overlayFields(values, file any) {
	if reflect.ValueOf(file).IsZero() {
		return // as in most agents' files
	}
	eachKey(values, file, func(_ string, value, own reflect.Value) {
		if !own.IsNil() {
			value.Set(own.Elem().Convert(value.Type()))
		}
	})
}

// eachKey yields the fields of an agent's file, and for each the field of values with the
// same key. Values is a struct, or a pointer to one whose fields are to be set.
func eachKey(values, file any, yield func(key string, value, own reflect.Value)) {
	v, f := reflect.Indirect(reflect.ValueOf(values)), reflect.ValueOf(file)
	for i := range f.NumField() {
		key := f.Type().Field(i).Tag.Get("yaml")
		for j := range v.NumField() {
			if v.Type().Field(j).Tag.Get("key") == key {
				yield(key, v.Field(j), f.Field(i))
			}
		}
	}
}

// faults are errors in settings; each begins with its key.
type faults []error

// checkCounts returns the faults of the integers with a key: each must be at least its min,
// which is 0 without a tag.
func checkCounts(values any) faults {
	var list faults
	v := reflect.ValueOf(values)
	for i := range v.NumField() {
		tag, n := v.Type().Field(i).Tag, v.Field(i)
		if key := tag.Get("key"); key != "" && n.Kind() == reflect.Int {
			list.add(tag.Get("min") == "" && n.Int() < 0, "%s is %d: it cannot be negative (0 switches it off)", key, n.Int())
			list.add(tag.Get("min") == "1" && n.Int() < 1, "%s is %d: use 1 or more", key, n.Int())
		}
	}
	return list
}

func (f *faults) add(bad bool, format string, args ...any) {
	if bad {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

// join returns all faults as one ErrInvalid that begins with the section of the agent's
// file, and wraps each; nil = no faults.
func (f faults) join(part string) error {
	if len(f) == 0 {
		return nil
	}
	all := errors.Join(f...)
	e := core.Errorf(core.ErrInvalid, "%s: %s", part, strings.ReplaceAll(all.Error(), "\n", "; "))
	e.Err = all
	return e
}
