package fakeslack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// maxBody is how much of a request's body is read, in bytes.
const maxBody = 4 << 20

// args are the arguments of a method: strings from a form, any value from JSON.
type args map[string]any

// decodeArgs reads the arguments from the query and the body.
func decodeArgs(r *http.Request) (args, error) {
	r.Body = http.MaxBytesReader(nil, r.Body, maxBody)
	a := args{}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind == "application/json" {
		decoder := json.NewDecoder(r.Body)
		decoder.UseNumber()
		if err := decoder.Decode(&a); err != nil && !errors.Is(err, io.EOF) { // no body is no arguments
			return nil, failure{code: "invalid_json"}
		}
		if a == nil { // the body was null
			a = args{}
		}
		return a, nil
	}
	if err := r.ParseMultipartForm(maxBody); err != nil && !errors.Is(err, http.ErrNotMultipart) {
		return nil, failure{code: "invalid_form_data"}
	}
	for name, values := range r.Form {
		a[name] = values[0]
	}
	return a, nil
}

// text returns an argument as a string, "" if it is missing or null.
func (a args) text(name string) string {
	switch v := a[name].(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

func (a args) flag(name string) bool {
	v := a.text(name)
	return v == "true" || v == "1"
}

func (a args) number(name string, otherwise int) int {
	if n, err := strconv.Atoi(a.text(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// raw returns an argument that is JSON, in a form as a string; nil if it is missing.
func (a args) raw(name string) json.RawMessage {
	switch v := a[name].(type) {
	case nil:
		return nil
	case string:
		return json.RawMessage(strings.TrimSpace(v))
	default:
		data, err := json.Marshal(v)
		if err != nil {
			return nil
		}
		return data
	}
}

// decode reads a JSON argument; a missing one leaves the target alone.
func (a args) decode(name string, target any) error {
	raw := a.raw(name)
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, target); err != nil {
		return failure{code: "invalid_arguments", messages: []string{"[ERROR] " + name + " is not valid JSON"}}
	}
	return nil
}

// bearerToken returns the token of a request's header.
func bearerToken(r *http.Request) string {
	value, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return ""
	}
	return value
}
