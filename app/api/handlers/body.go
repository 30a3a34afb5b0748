package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// Codes of errors that have an HTTP status of their own. Their kind is
// core.ErrInvalid, which alone would be 422.
const (
	CodeMalformed   = "malformed_body"         // 400: not JSON, or not an object
	CodeMediaType   = "unsupported_media_type" // 415
	CodeBodyTimeout = "body_timeout"           // 408: the body came too slowly
)

// readBody reads the request's body into a T, a struct whose fields all have a
// json tag. No body is the same as {}; null is the same as leaving a field out.
// It refuses what is not a JSON object, fields that T does not have, and values
// of another type; the error names every such field at once.
func readBody[T any](c *gin.Context) (T, error) {
	var into T
	data, err := rawBody(c.Request)
	if err != nil || len(data) == 0 {
		return into, err
	}
	err = Decode(data, &into)
	return into, err
}

// rawBody reads the body, after a look at its type: a web page can post other
// types than JSON to us without asking.
func rawBody(r *http.Request) ([]byte, error) {
	data, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		return nil, BodyFault(err)
	case len(data) == 0:
		return nil, nil
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return nil, &core.Error{Kind: core.ErrInvalid, Code: CodeMediaType, Message: "the body must be JSON, with Content-Type: application/json"}
	}
	return data, nil
}

// BodyFault says in core's words why a body could not be read.
func BodyFault(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return core.Errorf(core.ErrTooLarge, "the body is larger than %d bytes", tooLarge.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &core.Error{Kind: core.ErrInvalid, Code: CodeBodyTimeout, Message: "the body came too slowly"}
	default:
		return &core.Error{Kind: core.ErrInvalid, Code: CodeMalformed, Message: "the body broke off", Err: err}
	}
}

// Decode reads a JSON object into the struct that into points to, as strictly as
// every body is read. Exported for the other dialects of the API and the fuzzer.
func Decode(data []byte, into any) error {
	if !utf8.Valid(data) {
		// encoding/json would replace the bad bytes without a word.
		return malformed("the body is not UTF-8")
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(data, &given); err != nil {
		return malformed("%s", explainSyntax(data, err))
	}
	if given == nil {
		return malformed("the body must be a JSON object")
	}
	target := reflect.ValueOf(into).Elem()
	var faults core.Faults
	known := make([]string, 0, target.NumField())
	for i := range target.NumField() {
		name, _, _ := strings.Cut(target.Type().Field(i).Tag.Get("json"), ",")
		known = append(known, name)
		if err := setField(target.Field(i), given[name]); err != nil {
			faults.Add(name, "%s", explainType(err))
		}
		delete(given, name)
	}
	for _, name := range firstOf(given) {
		faults = append(faults, unknown(name, "field", known))
	}
	return invalid(faults)
}

// setField decodes one value; nothing and null leave the field as it is.
func setField(field reflect.Value, raw json.RawMessage) error {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return nil
	}
	return json.Unmarshal(raw, field.Addr().Interface())
}

// unknown is the fault of a name that is not among those that are known.
func unknown(name, what string, known []string) core.FieldError {
	name = shorten(name) // also for Nearest, whose time grows with its length
	detail := fmt.Sprintf("is not a %s here", what)
	if near := core.Nearest(name, known); near != "" {
		detail += fmt.Sprintf(" (did you mean %s?)", near)
	}
	if len(known) == 0 {
		return core.FieldError{Field: name, Detail: detail + "; there are none"}
	}
	return core.FieldError{Field: name, Detail: detail + "; there are " + strings.Join(known, ", ")}
}

// firstOf returns the first names in the alphabet, as many as are reported.
func firstOf(given map[string]json.RawMessage) []string {
	names := slices.Sorted(maps.Keys(given))
	return names[:min(len(names), core.MaxFaults)]
}

func malformed(format string, args ...any) error {
	return &core.Error{Kind: core.ErrInvalid, Code: CodeMalformed, Message: fmt.Sprintf(format, args...)}
}

// invalid returns the error that names the faults, nil if there are none.
func invalid(faults core.Faults) error {
	slices.SortFunc(faults, func(a, b core.FieldError) int { return strings.Compare(a.Field, b.Field) })
	return faults.Err()
}

// explainSyntax says where the JSON is wrong.
func explainSyntax(data []byte, err error) string {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return "the body must be a JSON object"
	}
	// The offset is the number of bytes read, the wrong one included.
	before := data[:min(max(syntax.Offset-1, 0), int64(len(data)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("the body is not JSON: line %d, column %d: %s", line, column, syntax.Error())
}

// explainType says what a value should have been.
func explainType(err error) string {
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

// object is a JSON object that is kept as it came.
type object json.RawMessage

// UnmarshalJSON refuses every value that is not an object.
func (o *object) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '{' {
		return errors.New("must be an object")
	}
	*o = bytes.Clone(data)
	return nil
}

// shorten cuts what came from outside and is shown again.
func shorten(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
