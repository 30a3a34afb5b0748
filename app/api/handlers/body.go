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

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

// Codes of errors that have an HTTP status of their own. Their kind is
// core.ErrInvalid, which alone would be 422.
const (
	CodeMalformed   = "malformed_body"         // 400: not JSON, or not an object
	CodeMediaType   = "unsupported_media_type" // 415
	CodeBodyTimeout = "body_timeout"           // 408: the body arrived too slowly
)

// readInto reads the request's body into a struct, whose fields with a json tag are its members
// (ops.Fields). An empty body equals {}; null equals leaving a field out. It refuses
// anything but a JSON object, members that the struct does not have, and values of a wrong type;
// the error names all such members. The memory is reserved until the request waits for its run,
// or ends.
func readInto(c *gin.Context, into any) error {
	data, err := rawBody(c)
	if err != nil || len(data) == 0 {
		return err
	}
	return Decode(data, into)
}

// ReadForeign reads the body of a request of another protocol into a T: as strictly as the
// native ones, but it ignores fields that T does not have. The caller releases the hold (HoldOf) when
// it no longer needs the T.
func ReadForeign[T any](c *gin.Context) (T, error) {
	var into T
	data, err := rawBody(c)
	if err != nil {
		return into, err
	}
	return into, decodeBody(data, &into, true)
}

// ReadText returns the body of a request of another protocol, which is JSON text within the
// limits of values and levels; nothing is decoded yet.
func ReadText(c *gin.Context) ([]byte, error) {
	data, err := rawBody(c)
	if err != nil {
		return nil, err
	}
	return data, checkText(data, core.MaxBodyValues)
}

// rawBody reads the body and checks its media type: web pages can post types other than
// JSON without a CORS preflight.
func rawBody(c *gin.Context) ([]byte, error) {
	r := c.Request
	// Content-Length is only a claim: allocate little before data arrives.
	const initialBytes, maxArriving = 32 << 10, 64 << 10
	arriving := io.TeeReader(io.LimitReader(r.Body, maxArriving), chargeWriter{HoldOf(c)})
	data, err := readAll(arriving, min(max(r.ContentLength, 0), initialBytes))
	if err != nil {
		return nil, BodyError(err)
	}
	if len(data) == maxArriving {
		data, err = readRest(c, data)
	} else {
		values, _ := core.JSONSize(data)
		err = reserveJSON(c, int64(len(data)), values)
	}
	if err != nil {
		return nil, err
	}
	hashRequest(c, data)
	if len(data) == 0 {
		return nil, nil
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return nil, &core.Error{Kind: core.ErrInvalid, Code: CodeMediaType, Message: "the body must be JSON, with Content-Type: application/json"}
	}
	return data, nil
}

// reserveJSON reserves the memory for a body of so many bytes and values, before it is decoded:
// decoded, many small values take far more than their text. A body with more values than any may
// have is refused before.
func reserveJSON(c *gin.Context, bytes int64, values int) error {
	return ReserveMemory(c, core.JSONMemory(bytes, min(values, core.MaxLineValues)))
}

// BodyError returns the core.Error for an error of reading a body.
func BodyError(err error) error {
	var tooLarge *http.MaxBytesError
	var shown *core.Error
	switch {
	case errors.As(err, &shown):
		return err
	case errors.As(err, &tooLarge):
		return core.Errorf(core.ErrTooLarge, "the body is larger than %d bytes", tooLarge.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &core.Error{Kind: core.ErrInvalid, Code: CodeBodyTimeout, Message: "the body arrived too slowly"}
	default:
		return &core.Error{Kind: core.ErrInvalid, Code: CodeMalformed, Message: "the body ended early", Err: err}
	}
}

// Decode reads a JSON object into the struct that into points to, as strictly as readInto.
func Decode(data []byte, into any) error { return decodeBody(data, into, false) }

// decodeBody decodes a body. One of another protocol may have fields that are not known, and
// more values: whole conversations.
func decodeBody(data []byte, into any, foreign bool) error {
	maxValues := core.MaxBodyValues
	if foreign {
		maxValues = core.MaxLineValues
	}
	if err := checkText(data, maxValues); err != nil {
		return err
	}
	var given map[string]member
	if err := json.Unmarshal(data, &given); err != nil {
		return malformedError("%s", explainSyntax(data, err))
	}
	if given == nil {
		return malformedError("the body must be a JSON object")
	}
	target := reflect.ValueOf(into).Elem()
	var faults core.Faults
	var known []string
	for _, f := range ops.Fields(target.Type()) {
		if f.Place != ops.InBody {
			continue
		}
		known = append(known, f.Name)
		value := target.FieldByIndex(f.Index)
		if err := setField(value, f, given[f.Name], foreign); err != nil {
			faults.Add(f.Name, "%s", ops.ExplainType(err))
		} else if enum := f.Enum(); enum != nil && value.Kind() == reflect.String && value.String() != "" && !slices.Contains(enum, value.String()) {
			faults.Add(f.Name, "must be %s", oneOf(enum))
		}
		delete(given, f.Name)
	}
	if foreign {
		clear(given)
	}
	names := slices.Sorted(maps.Keys(given))
	for _, name := range names[:min(len(names), core.MaxFaults)] {
		faults = append(faults, unknownName(name, "field", known))
	}
	return invalidError(faults)
}

// checkText checks what can be checked of a body before it is decoded.
func checkText(data []byte, maxValues int) error {
	if !utf8.Valid(data) {
		// encoding/json would silently replace the invalid bytes.
		return malformedError("the body is not UTF-8")
	}
	if err := core.CheckJSON(data, maxValues); err != nil {
		return core.Errorf(core.ErrInvalid, "the body %s", err)
	}
	return nil
}

// member is the text of one value of the body. It shares the body's memory, which
// json.RawMessage would copy; neither is modified.
type member []byte

// UnmarshalJSON keeps the value as it is.
func (m *member) UnmarshalJSON(text []byte) error {
	*m = text
	return nil
}

// setField decodes one value; nothing and null leave the field as it is. An object that may be left out has
// no unknown members, but for other protocols: one that is spelled wrong would change nothing, and nobody
// would notice.
func setField(into reflect.Value, f ops.Field, raw member, foreign bool) error {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return nil
	}
	if into.Type() == reflect.TypeFor[json.RawMessage]() && f.Tag.Get("schema") != "" && raw[0] != '{' {
		return errors.New("must be an object")
	}
	if into.Kind() != reflect.Pointer || foreign {
		return json.Unmarshal(raw, into.Addr().Interface())
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into.Addr().Interface())
}

// maxShown bounds a text of the caller that an error repeats, in bytes.
const maxShown = 64

func unknownName(name, what string, known []string) core.FieldError {
	name = core.Clip(name, maxShown) // also for Nearest, whose time grows with its length
	detail := fmt.Sprintf("is not a known %s", what)
	if near := core.Nearest(name, known); near != "" {
		detail += fmt.Sprintf(" (did you mean %s?)", near)
	}
	if len(known) == 0 {
		return core.FieldError{Field: name, Detail: detail + "; this request has none"}
	}
	return core.FieldError{Field: name, Detail: detail + "; known are " + strings.Join(known, ", ")}
}

func malformedError(format string, args ...any) error {
	return &core.Error{Kind: core.ErrInvalid, Code: CodeMalformed, Message: fmt.Sprintf(format, args...)}
}

// invalidError returns the error that lists the faults, nil if there are none.
func invalidError(faults core.Faults) error {
	slices.SortFunc(faults, func(a, b core.FieldError) int { return strings.Compare(a.Field, b.Field) })
	return faults.Err()
}

// explainSyntax says where the JSON is invalid.
func explainSyntax(data []byte, err error) string {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return "the body must be a JSON object"
	}
	// The offset is the number of bytes read, including the invalid one.
	before := data[:min(max(syntax.Offset-1, 0), int64(len(data)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("the body is not JSON: line %d, column %d: %s", line, column, syntax.Error())
}
