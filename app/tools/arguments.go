package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// arguments reads a call's raw arguments into a T, strictly: one JSON object with
// known fields of the right types. No text at all is an empty object, which
// models send for tools without arguments. Errors tell the model what is wrong,
// and what is expected by an example.
func arguments[T any](raw, example string) (T, error) {
	var args T
	trimmed := strings.TrimSpace(raw)
	if trimmed == "" {
		return args, nil
	}
	if err := decode(trimmed, &args); err != nil {
		var none T
		return none, fmt.Errorf("%w; expected a JSON object such as %s", err, example)
	}
	return args, nil
}

func decode(raw string, target any) error {
	if raw[0] != '{' {
		return errors.New("the arguments are not an object")
	}
	decoder := json.NewDecoder(strings.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(target); err != nil {
		return explain(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more text after the arguments")
	}
	return nil
}

// explain says in words what the JSON package found.
func explain(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%q must be a %s, not a %s", wrong.Field, wrong.Type, wrong.Value)
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("there is no argument %s", field)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the arguments are not valid JSON: they break off")
	}
	return fmt.Errorf("the arguments are not valid JSON: %w", err)
}
