package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// parseArguments decodes a call's raw arguments into a T, strictly: one JSON object with
// known fields of the right types. Empty text is an empty object, as some models send
// nothing for tools without arguments. Errors tell the model what is wrong, with an
// example.
func parseArguments[T any](raw, example string) (T, error) {
	var args T
	trimmed := strings.TrimSpace(raw)
	if trimmed == "" {
		return args, nil
	}
	if err := decodeStrictly(trimmed, &args); err != nil {
		var none T
		return none, fmt.Errorf("%w; expected a JSON object such as %s", err, example)
	}
	return args, nil
}

func decodeStrictly(raw string, target any) error {
	if raw[0] != '{' {
		return errors.New("the arguments are not an object")
	}
	decoder := json.NewDecoder(strings.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(target); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return fmt.Errorf("%q must be a %s, not a %s", wrong.Field, wrong.Type, wrong.Value)
		}
		if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return fmt.Errorf("there is no argument %s", field)
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("the arguments are not valid JSON: the end is missing")
		}
		return fmt.Errorf("the arguments are not valid JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is text after the arguments")
	}
	return nil
}
