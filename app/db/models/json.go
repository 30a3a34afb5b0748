package models

import (
	"bytes"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"slices"
)

// JSON is a column of JSON text: jsonb or json in PostgreSQL, TEXT in SQLite. Nil
// is NULL.
type JSON json.RawMessage

// Value gives the text to the driver.
func (j JSON) Value() (driver.Value, error) {
	if j == nil {
		return nil, nil
	}
	return string(j), nil
}

// Scan takes the text from the driver.
func (j *JSON) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*j = nil
	case string:
		*j = JSON(v)
	case []byte:
		*j = JSON(slices.Clone(v)) // the driver's memory
	default:
		return fmt.Errorf("a %T is not JSON text", v)
	}
	return nil
}

// raw returns the column as core has it.
func (j JSON) raw() json.RawMessage { return json.RawMessage(j) }

// jsonFrom returns raw as a column: NULL for nothing and for null.
func jsonFrom(raw []byte) JSON {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return nil
	}
	return JSON(raw)
}

// encode returns v as a column. It panics on what JSON cannot say: v is always a
// plain value of core.
func encode(v any) JSON {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("models: " + err.Error())
	}
	return JSON(bytes.TrimRight(b.Bytes(), "\n"))
}

// encodeList is encode, but NULL for an empty list.
func encodeList[T any](list []T) JSON {
	if len(list) == 0 {
		return nil
	}
	return encode(list)
}

// decode reads a column into v; NULL leaves v as it is.
func (j JSON) decode(v any) error {
	if j == nil {
		return nil
	}
	return json.Unmarshal(j, v)
}
