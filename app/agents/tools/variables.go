package tools

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"bobbin/app/core"
)

// variable matches ${NAME}, and what begins like it.
var variable = regexp.MustCompile(`\$\{([^}]*)\}?`)

// variableName is what a variable of the environment may be called.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// CheckVariables checks the variables ${NAME} in the value of a header.
func CheckVariables(value string) error {
	for _, found := range variable.FindAllStringSubmatch(value, -1) {
		if !strings.HasSuffix(found[0], "}") || !variableName.MatchString(found[1]) {
			return errors.New("write a variable of the environment as ${NAME}")
		}
	}
	return nil
}

// Environment reads variables of the environment; "" = not set.
type Environment func(name string) string

// missingError says that a variable is not set.
func missingError(name string) error {
	return fmt.Errorf("the tool is not set up: the environment variable %s is not set", name)
}

// Headers returns the headers by canonical names, with secrets. An error names the variable that is not set.
func (e Environment) Headers(d core.ToolDefinition) (headers map[string]string, err error) {
	headers = map[string]string{}
	read := func(name string) string {
		value := e(name)
		if value == "" {
			err = missingError(name)
		}
		return value
	}
	for name, value := range d.Headers {
		headers[http.CanonicalHeaderKey(name)] = variable.ReplaceAllStringFunc(value, func(found string) string {
			return read(strings.TrimSuffix(strings.TrimPrefix(found, "${"), "}"))
		})
	}
	if d.Bearer != "" {
		headers["Authorization"] = "Bearer " + read(d.Bearer)
	}
	for _, value := range headers {
		if strings.ContainsAny(value, "\r\n\x00") {
			return nil, errors.New("the tool is not set up: a variable for a header has more than one line")
		}
	}
	return headers, err
}

// Secret returns the secret of a definition's OAuth client; empty = the definition has none.
func (e Environment) Secret(d core.ToolDefinition) (string, error) {
	name := d.OAuth.ClientSecret
	if name == "" {
		return "", nil
	}
	if e(name) == "" {
		return "", missingError(name)
	}
	return e(name), nil
}

// List returns the environment of a program: the variables that the list names, as NAME, or sets, as
// NAME=value. An empty list is PATH and HOME.
func (e Environment) List(list []string) ([]string, error) {
	if len(list) == 0 {
		list = []string{"PATH", "HOME"}
	}
	var out []string
	for _, entry := range list {
		if strings.Contains(entry, "=") {
			out = append(out, entry)
			continue
		}
		value := e(entry)
		switch {
		case value != "":
			out = append(out, entry+"="+value)
		case entry != "PATH" && entry != "HOME":
			return nil, missingError(entry)
		}
	}
	return out, nil
}

// Check returns an error if a variable of a definition is not set.
func (e Environment) Check(d core.ToolDefinition) error {
	_, err := e.Headers(d)
	if err == nil {
		_, err = e.Secret(d)
	}
	if err == nil && d.Command != "" {
		_, err = e.List(d.Env)
	}
	return err
}

// minSecret is the shortest text that is taken for a secret, in bytes: a shorter one may be a word.
const minSecret = 8

// Secrets returns the values of the variables that a definition names, the longest first. PATH and
// HOME in the environment of a program are no secrets: results have the paths.
func (e Environment) Secrets(d core.ToolDefinition) []string {
	names := []string{d.Bearer, d.OAuth.ClientSecret}
	for _, header := range d.Headers {
		for _, found := range variable.FindAllStringSubmatch(header, -1) {
			names = append(names, found[1])
		}
	}
	for _, entry := range d.Env {
		if entry != "PATH" && entry != "HOME" && !strings.Contains(entry, "=") {
			names = append(names, entry)
		}
	}
	var secrets []string
	for _, name := range names {
		if name != "" {
			secret := e(name)
			forms := append([]string{secret}, strings.Split(secret, "\n")...)
			plain, _ := core.EncodeJSON(secret) // texts always are JSON
			escaped, _ := json.Marshal(secret)
			for _, quoted := range []string{string(plain), string(escaped), escapeASCII(string(plain), "%04x"), escapeASCII(string(plain), "%04X")} {
				forms = append(forms, quoted[1:len(quoted)-1])
			}
			for _, form := range forms {
				forms = append(forms, strings.ReplaceAll(form, "/", `\/`))
			}
			slices.Sort(forms)
			secrets = append(secrets, slices.Compact(forms)...)
		}
	}
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // one may contain another
	return secrets
}

// escapeASCII escapes what is not ASCII in a text of JSON; digits is the format of a code unit.
func escapeASCII(text, digits string) string {
	var b strings.Builder
	for _, r := range text {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u`+digits, unit)
		}
	}
	return b.String()
}

// HideSecrets returns the text without the secrets: a server or a program may repeat what it was given.
func HideSecrets(text string, secrets []string) string {
	for _, secret := range secrets {
		if len(secret) >= minSecret {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return text
}

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

// CheckRequest checks what stands for arguments in a request. A fault names the key as in the file: query.page.
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
