package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"bobbin/app/core"
)

// runOptions is the options of a run in a request.
type runOptions core.RunOptions

// UnmarshalJSON refuses fields that options do not have: one that is spelled wrong would
// change nothing, and nobody would notice.
func (o *runOptions) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '{' {
		return errors.New("must be an object")
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	err := decoder.Decode((*core.RunOptions)(o))
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("are wrong: %s %s", strings.TrimPrefix(wrong.Field, "ModelParameters."), explainType(err))
	}
	if err != nil {
		return fmt.Errorf("are wrong: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if o.Response != nil { // of the Responses API alone
		return errors.New(`are wrong: unknown field "response"`)
	}
	return nil
}
