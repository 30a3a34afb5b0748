package ops

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"bobbin/app/core"
)

// RunOptions are the options of a run in a request.
type RunOptions core.RunOptions

// UnmarshalJSON refuses fields that options do not have: one that is spelled wrong would
// change nothing, and nobody would notice.
func (o *RunOptions) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '{' {
		return errors.New("must be an object")
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	err := decoder.Decode((*core.RunOptions)(o))
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("are wrong: %s %s", strings.TrimPrefix(wrong.Field, "ModelParameters."), ExplainType(err))
	}
	if err != nil {
		return fmt.Errorf("are wrong: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	if o.Response != nil { // of the Responses API alone
		return errors.New(`are wrong: unknown field "response"`)
	}
	return nil
}

// ExplainType says what a value should have been.
func ExplainType(err error) string {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err.Error() // of our own UnmarshalJSON methods
	}
	want := map[reflect.Kind]string{
		reflect.String: "a string", reflect.Bool: "true or false", reflect.Slice: "a list",
		reflect.Int: "a whole number", reflect.Int64: "a whole number", reflect.Float32: "a number", reflect.Float64: "a number",
	}[wrong.Type.Kind()]
	if want == "" {
		want = "an object"
	}
	return fmt.Sprintf("must be %s, not %s", want, wrong.Value)
}
