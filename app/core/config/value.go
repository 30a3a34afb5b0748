package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bytes is a size. It is written as a number of bytes or with a unit: 1MiB, 512 KiB,
// 10MB.
type Bytes int64

// sizeUnits are the units of sizes, the longer names first.
func sizeUnits() []struct {
	name string
	size Bytes
} {
	return []struct {
		name string
		size Bytes
	}{
		{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
		{"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1},
	}
}

// String returns the size with the largest binary unit that divides it.
func (b Bytes) String() string {
	for _, u := range sizeUnits()[:3] {
		if b != 0 && b%u.size == 0 {
			return fmt.Sprintf("%d%s", b/u.size, u.name)
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// parseBytes is the reverse of Bytes.String; it also takes decimal units.
func parseBytes(s string) (Bytes, error) {
	number, factor := strings.TrimSpace(s), Bytes(1)
	for _, u := range sizeUnits() {
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

// assignValue puts a raw value, as YAML or a text has it, into what field points to.
// The error says what was expected, and never holds a secret.
func assignValue(field, raw any) error {
	switch p := field.(type) {
	case *string:
		return convertValue(p, raw, "text; put it in quotes", asText)
	case *bool:
		return convertValue(p, raw, "true or false", asBool)
	case **bool:
		var set bool
		if err := convertValue(&set, raw, "true or false", asBool); err != nil {
			return err
		}
		*p = &set
		return nil
	case *int:
		return convertValue(p, raw, "a whole number", asInt)
	case *float64:
		return convertValue(p, raw, "a number", asFloat)
	case *time.Duration:
		return convertValue(p, raw, "a time with a unit, such as 30s or 5m", asDuration)
	case *Bytes:
		return convertValue(p, raw, "a size; write bytes or a unit, such as 1MiB", asBytes)
	case *Secret:
		s, ok := raw.(string)
		if !ok {
			return errors.New("this is not text")
		}
		*p = NewSecretURL(s)
		return nil
	case *[]string:
		return convertValue(p, raw, "a list of texts", asList)
	case *[]APIKey:
		return assignKeys(p, raw)
	case *[]Model:
		return assignModels(p, raw)
	case *[]SpendLimit:
		return assignSpendLimits(p, raw)
	default:
		panic(fmt.Sprintf("config: no setting has the type %T", field))
	}
}

// convertValue converts raw and stores it, or says what was wanted.
func convertValue[T any](field *T, raw any, wanted string, convert func(any) (T, bool)) error {
	value, ok := convert(raw)
	if ok {
		*field = value
		return nil
	}
	switch raw.(type) {
	case map[string]any, map[any]any:
		return fmt.Errorf("this is a section, and should be %s", wanted)
	case []any:
		return fmt.Errorf("this is a list, and should be %s", wanted)
	default:
		return fmt.Errorf("%q is not %s", fmt.Sprint(raw), wanted)
	}
}

func asText(raw any) (string, bool) {
	s, ok := raw.(string)
	return s, ok
}

func asBool(raw any) (bool, bool) {
	if s, ok := raw.(string); ok {
		b, err := strconv.ParseBool(strings.TrimSpace(s))
		return b, err == nil
	}
	b, ok := raw.(bool)
	return b, ok
}

func asInt(raw any) (int, bool) {
	switch v := raw.(type) {
	case int:
		return v, true
	case string:
		n, err := strconv.Atoi(strings.ReplaceAll(strings.TrimSpace(v), "_", ""))
		return n, err == nil
	default:
		return 0, false
	}
}

func asFloat(raw any) (float64, bool) {
	switch v := raw.(type) {
	case float64:
		return v, !math.IsNaN(v) && !math.IsInf(v, 0)
	case int:
		return float64(v), true
	case string:
		f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
	default:
		return 0, false
	}
}

func asDuration(raw any) (time.Duration, bool) {
	s, ok := raw.(string)
	if !ok {
		return 0, false
	}
	d, err := time.ParseDuration(strings.TrimSpace(s))
	return d, err == nil
}

func asBytes(raw any) (Bytes, bool) {
	switch v := raw.(type) {
	case int:
		return Bytes(v), true
	case string:
		b, err := parseBytes(v)
		return b, err == nil
	default:
		return 0, false
	}
}

// asList takes a list of texts, or one text with commas.
func asList(raw any) ([]string, bool) {
	if s, ok := raw.(string); ok {
		return splitList(s), true
	}
	items, ok := raw.([]any)
	if !ok {
		return nil, false
	}
	var list []string
	for _, item := range items {
		s, ok := item.(string)
		if !ok {
			return nil, false
		}
		list = append(list, s)
	}
	return list, true
}

// splitList returns what stands between commas, without blanks and empty entries.
func splitList(s string) []string {
	var list []string
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
	case *float64:
		return strconv.FormatFloat(*p, 'g', -1, 64)
	case *time.Duration:
		return showDuration(*p)
	case *[]string:
		return strings.Join(*p, ",")
	case *[]APIKey:
		return showKeys(*p)
	case *[]Model:
		return showModels(*p)
	case *[]SpendLimit:
		return showSpendLimits(*p)
	case *string:
		return *p
	case *bool:
		return strconv.FormatBool(*p)
	case *int:
		return strconv.Itoa(*p)
	case *Bytes:
		return p.String()
	case *Secret:
		return p.String()
	default:
		panic(fmt.Sprintf("config: no setting has the type %T", field))
	}
}

// showDuration leaves out zero seconds and minutes: 10m, not 10m0s.
func showDuration(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}

func showKeys(keys []APIKey) string {
	var list []string
	for _, k := range keys {
		list = append(list, k.Name+":"+hidden)
	}
	return strings.Join(list, ",")
}

func showModels(models []Model) string {
	var list []string
	for _, m := range models {
		list = append(list, m.Name)
	}
	return strings.Join(list, ",")
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
