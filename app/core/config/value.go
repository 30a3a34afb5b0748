package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"
	"go.yaml.in/yaml/v3"
)

// Bytes is a size. It is written as a number of bytes or with a unit: 1MiB, 512 KiB,
// 10MB.
type Bytes int64

// sizeUnits are the units of sizes, the longer names first.
//
//nolint:gochecknoglobals // a constant table
var sizeUnits = []struct {
	name string
	size Bytes
}{
	{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1},
}

// String returns the size with the largest binary unit that divides it.
func (b Bytes) String() string {
	for _, u := range sizeUnits[:3] {
		if b != 0 && b%u.size == 0 {
			return fmt.Sprintf("%d%s", b/u.size, u.name)
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// parseBytes is the reverse of Bytes.String; it also takes decimal units.
func parseBytes(s string) (Bytes, error) {
	number, factor := strings.TrimSpace(s), Bytes(1)
	for _, u := range sizeUnits {
		if head := len(number) - len(u.name); head > 0 && strings.EqualFold(number[head:], u.name) {
			number, factor = strings.TrimSpace(number[:head]), u.size
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n > math.MaxInt64/int64(factor) || n < math.MinInt64/int64(factor) {
		return 0, fmt.Errorf("%q is not a size; write bytes or a unit, such as 1MiB", s)
	}
	return Bytes(n) * factor, nil
}

// decodeValue decodes the value of the key into what field points to. Its faults hold no secrets.
func decodeValue(values *viper.Viper, key string, field any) []*Fault {
	var meta mapstructure.Metadata
	err := values.UnmarshalKey(key, field, func(c *mapstructure.DecoderConfig) {
		c.TagName, c.Metadata, c.ZeroFields, c.WeaklyTypedInput = "key", &meta, true, false
		c.DecodeHook = mapstructure.DecodeHookFuncValue(convertValue)
		c.MatchName = func(a, b string) bool { return a == b }
	})
	found := faultsOf(key, err)
	for _, at := range meta.Unused { // [1].provdier
		name := at[strings.IndexByte(at, '.')+1:]
		var names []string
		for f := range reflect.TypeOf(field).Elem().Elem().Fields() {
			names = append(names, f.Tag.Get("key"))
		}
		found = append(found, &Fault{Key: key + at, Problem: unknownKey(name, names)})
	}
	slices.SortFunc(found, func(a, b *Fault) int { return strings.Compare(a.Key, b.Key) })
	return found
}

// convertValue converts a raw value, as YAML or a text has it, to the type of a setting, or says
// what was wanted.
func convertValue(from, to reflect.Value) (any, error) {
	raw := from.Interface()
	written, isText := raw.(string)
	text := strings.TrimSpace(fmt.Sprint(raw))
	var value any
	var err error
	wanted := ""
	switch to.Interface().(type) {
	case string, Secret:
		if !isText && from.Kind() != reflect.Slice && from.Kind() != reflect.Map {
			return nil, errors.New("this is not text; put it in quotes")
		}
		if value, wanted = raw, "text; put it in quotes"; to.Type() == reflect.TypeFor[Secret]() {
			value = NewSecretURL(written)
		}
	case bool:
		value, err = strconv.ParseBool(text)
		wanted = "true or false"
	case int:
		value, err = strconv.Atoi(strings.ReplaceAll(text, "_", ""))
		wanted = "a whole number"
	case float64:
		var number float64
		if number, err = strconv.ParseFloat(text, 64); math.IsNaN(number) || math.IsInf(number, 0) {
			err = strconv.ErrRange
		}
		value = number
		wanted = "a number"
	case time.Duration:
		value, err = time.ParseDuration(text)
		wanted = "a time with a unit, such as 30s or 5m"
	case Bytes:
		value, err = parseBytes(text)
		wanted = "a size; write bytes or a unit, such as 1MiB"
	default:
		return convertList(from, to)
	}
	switch {
	case from.Kind() == reflect.Map:
		return nil, fmt.Errorf("this is a section, and should be %s", wanted)
	case from.Kind() == reflect.Slice:
		return nil, fmt.Errorf("this is a list, and should be %s", wanted)
	case err != nil:
		return nil, fmt.Errorf("%q is not %s", fmt.Sprint(raw), wanted)
	}
	return value, nil
}

// convertList converts lists and their entries: a list of texts may be one text with commas, one of
// entries a text in YAML or JSON.
func convertList(from, to reflect.Value) (any, error) {
	raw := from.Interface()
	text, isText := raw.(string)
	switch to.Interface().(type) {
	case []string, []APIKey:
		wanted := "texts"
		if to.Type() == reflect.TypeFor[[]APIKey]() {
			wanted = "{name, secret}, or name:secret,name:secret"
		}
		switch {
		case isText:
			return splitList(text), nil
		case from.Kind() != reflect.Slice:
			return nil, errors.New("write a list of " + wanted)
		}
	case []Model, []SpendLimit:
		if isText && yaml.Unmarshal([]byte(text), &raw) != nil {
			return nil, errors.New("write a list in YAML or JSON")
		}
		if reflect.ValueOf(raw).Kind() != reflect.Slice {
			return nil, errors.New("write a list of entries, each with keys and values")
		}
	case Model, SpendLimit:
		if from.Kind() != reflect.Map {
			return nil, errors.New("write keys and values")
		}
	case APIKey:
		switch v := raw.(type) {
		case string:
			name, secret, ok := strings.Cut(v, ":")
			if !ok {
				return nil, errors.New("write name:secret; there is no colon")
			}
			return APIKey{Name: strings.TrimSpace(name), Secret: NewSecret(strings.TrimSpace(secret))}, nil
		case map[string]any:
			name, named := v["name"].(string)
			secret, known := v["secret"].(string)
			if !named || !known || len(v) != 2 {
				return nil, errors.New("write name and secret, both as text in quotes, and nothing else")
			}
			return APIKey{Name: name, Secret: NewSecret(secret)}, nil
		default:
			return nil, errors.New("write {name: …, secret: …} or name:secret")
		}
	}
	return raw, nil
}

// splitList returns what stands between commas, without blanks and empty entries.
func splitList(s string) []string {
	list := []string{} // not nil: it was set
	for item := range strings.SplitSeq(s, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

// displayValue returns the value that field points to as people read it, secrets masked.
func displayValue(field any) string {
	switch p := field.(type) {
	case *time.Duration:
		s := p.String()
		for _, zero := range []string{"m0s", "h0m"} { // 10m, not 10m0s
			if strings.HasSuffix(s, zero) {
				s = s[:len(s)-2]
			}
		}
		return s
	case *[]string:
		return strings.Join(*p, ",")
	case *[]APIKey:
		var list []string
		for _, k := range *p {
			list = append(list, k.Name+":"+hidden)
		}
		return strings.Join(list, ",")
	case *[]Model:
		var list []string
		for _, m := range *p {
			list = append(list, m.Name)
		}
		return strings.Join(list, ",")
	case *[]SpendLimit:
		var list []string
		for _, l := range *p {
			text := l.Key + ":"
			if l.USDPerDay > 0 {
				text += fmt.Sprintf(" $%g", l.USDPerDay)
			}
			if l.TokensPerDay > 0 {
				text += fmt.Sprintf(" %d tokens", l.TokensPerDay)
			}
			list = append(list, text+" a day")
		}
		return strings.Join(list, ", ")
	default:
		return fmt.Sprint(reflect.ValueOf(field).Elem())
	}
}
