package models

import (
	"bytes"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"bobbin/app/core"
)

// JSON is a column of JSON text: jsonb or json in PostgreSQL, TEXT in SQLite. Nil
// is NULL. What was not encoded here comes from RawJSON.
type JSON json.RawMessage

// Value returns the text for the driver, ErrInvalid if it cannot be stored.
func (j JSON) Value() (driver.Value, error) {
	if j == nil {
		return nil, nil
	}
	// What PostgreSQL's jsonb accepts of what is JSON if it is not empty.
	if len(j) == 0 || !utf8.Valid(j) || bytes.Contains(j, []byte(`\u`)) && !storableEscapes.Match(j) {
		return nil, core.Errorf(core.ErrInvalid, UnstorableMessage)
	}
	return string(j), nil
}

// GormDataType is the type of the column on PostgreSQL, unless a tag has another one.
func (JSON) GormDataType() string { return "jsonb" }

// Scan reads the text from the driver.
func (j *JSON) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*j = nil
	case string:
		*j = JSON(v)
	case []byte:
		*j = JSON(slices.Clone(v)) // the driver reuses its memory
	default:
		return fmt.Errorf("a %T is not JSON text", v)
	}
	return nil
}

// RawJSON returns raw, which may be anything, as a column: NULL for empty and for null. What is not JSON is not stored.
func RawJSON(raw json.RawMessage) JSON {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	if !json.Valid(raw) {
		return JSON{}
	}
	return JSON(raw)
}

// EncodeJSON returns v as a column: NULL for a nil pointer and an empty list. It panics on values that JSON cannot
// represent: v is always a plain value of core.
func EncodeJSON(v any) JSON {
	if r := reflect.ValueOf(v); r.Kind() == reflect.Pointer && r.IsNil() || r.Kind() == reflect.Slice && r.Len() == 0 {
		return nil
	}
	raw, err := core.EncodeJSON(v)
	if err != nil {
		panic("models: " + err.Error())
	}
	return JSON(raw)
}

// Decode reads the column into v; NULL leaves v as it is.
func (j JSON) Decode(v any) error {
	if j == nil {
		return nil
	}
	return json.Unmarshal(j, v)
}

// UnstorableMessage is the error for text that PostgreSQL does not store, and SQLite therefore neither.
const UnstorableMessage = "text must be valid UTF-8 without the character U+0000, and JSON must be valid"

// CheckText returns ErrInvalid for text that cannot be stored.
func CheckText(s string) error {
	if strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s) {
		return core.Errorf(core.ErrInvalid, UnstorableMessage)
	}
	return nil
}

// storableEscapes matches JSON that escapes neither U+0000 nor an unpaired surrogate.
var storableEscapes = regexp.MustCompile(`^(?i:[^\\]|\\[^u]|\\u(?:000[1-9a-f]|00[1-9a-f].|0[1-9a-f]..|[1-9abcef]...|d[0-7]..|d[89ab]..\\ud[c-f]..))*$`)

// Ref is an optional id or key: empty is NULL.
type Ref string

// Value returns the id for the driver.
func (r Ref) Value() (driver.Value, error) {
	if r == "" {
		return nil, nil
	}
	return string(r), nil
}

// Scan reads the id from the driver.
func (r *Ref) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*r = ""
	case string:
		*r = Ref(v)
	default:
		return fmt.Errorf("a %T is not an id", v)
	}
	return nil
}
