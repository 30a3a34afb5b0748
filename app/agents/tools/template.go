package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"bobbin/app/core"
)

// placeholder matches {argument}, and a brace that is alone.
var placeholder = regexp.MustCompile(`\{([^{}/?&]*)\}|[{}]`)

// placeholders returns the arguments in a text; false if a brace is alone.
func placeholders(text string) (names []string, ok bool) {
	for _, found := range placeholder.FindAllStringSubmatch(text, -1) {
		if found[1] == "" {
			return nil, false
		}
		names = append(names, found[1])
	}
	return names, true
}

// textOf returns an argument as text; false for one that is missing or null.
func textOf(value any) (string, bool) {
	switch v := value.(type) {
	case nil:
		return "", false
	case string:
		return v, true
	case []any:
		texts := make([]string, 0, len(v))
		for _, item := range v {
			if text, ok := textOf(item); ok {
				texts = append(texts, text)
			}
		}
		return strings.Join(texts, ","), true
	default:
		text, err := core.EncodeJSON(v)
		return string(text), err == nil
	}
}

// expandText puts the arguments, escaped, into a text; false if one of them is missing.
func expandText(value string, arguments map[string]any, escape func(string) string) (string, bool) {
	complete := true
	value = placeholder.ReplaceAllStringFunc(value, func(found string) string { // once: an argument is not searched
		text, ok := textOf(arguments[strings.Trim(found, "{}")])
		complete = complete && ok
		return escape(text)
	})
	return value, complete
}

// CheckAddress checks an address, in which {argument} may stand for an argument.
func CheckAddress(address string) error {
	u, err := url.Parse(address)
	_, rest, _ := strings.Cut(address, "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	switch {
	case strings.ContainsAny(rest, "{}"):
		return errors.New("must have a host, which no argument may change")
	case err != nil || len(address) > maxURL:
		return fmt.Errorf("is not an address of at most %d characters", maxURL)
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("must begin with http:// or https://")
	case u.User != nil:
		return errors.New("has a user or a password; use headers or bearer")
	case u.Host == "":
		return errors.New("must have a host")
	case u.Fragment != "":
		return errors.New("has a fragment; remove #" + u.Fragment)
	}
	return nil
}

// IsHeaderName reports whether a text can be the name of a header.
func IsHeaderName(name string) bool {
	return len(name) <= 100 && httpguts.ValidHeaderFieldName(name)
}

// CheckRequest checks what stands for arguments in the request of a definition. A fault names the key
// as in the file: query.page.
func CheckRequest(d core.ToolDefinition) (faults core.Faults) {
	var schema struct {
		Properties map[string]any `json:"properties"`
	}
	_ = json.Unmarshal(d.Parameters, &schema) // what is wrong with it is reported elsewhere
	check := func(key, text string) {
		names, ok := placeholders(text)
		if !ok {
			faults.Add(key, "has a brace that is alone; write {argument}")
		}
		for _, name := range names {
			if _, known := schema.Properties[name]; !known {
				faults.Add(key, "has {%[1]s}, and parameters has no property %[1]s", core.Clip(name, 100))
			}
		}
	}
	check("url", d.URL)
	for _, name := range slices.Sorted(maps.Keys(d.Query)) {
		check("query."+name, d.Query[name])
	}
	return faults
}
