package models

import (
	"bytes"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"bobbin/app/core"
)

// JSON is a column of JSON text: jsonb or json in PostgreSQL, TEXT in SQLite. Nil
// is NULL.
type JSON json.RawMessage

// Value returns the text for the driver, ErrInvalid if it cannot be stored.
func (j JSON) Value() (driver.Value, error) {
	if j == nil {
		return nil, nil
	}
	if !isStorableJSON(j) {
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

// rawMessage returns the column as a core value.
func (j JSON) rawMessage() json.RawMessage { return json.RawMessage(j) }

// jsonFrom returns raw as a column: NULL for empty and for null.
func jsonFrom(raw []byte) JSON {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return nil
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

// decodeInto reads a column into v; NULL leaves v as it is.
func (j JSON) decodeInto(v any) error {
	if j == nil {
		return nil
	}
	return json.Unmarshal(j, v)
}
