package tools

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

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

// Headers returns the headers of a definition by their canonical names, with their secrets. An error
// names the variable that is not set.
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

// HideSecrets returns the text without the secrets: a server or a program may repeat what it was
// given.
func HideSecrets(text string, secrets []string) string {
	for _, secret := range secrets {
		if len(secret) >= minSecret {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return text
}
