// Package models has the rows of Bobbin's tables: values of package core
// with the columns that only the database needs. Many values are rows as they are, see Names.
//
// Columns differ from the fields of a value only where the database requires it: an absent id is
// NULL, lists and free-form objects are JSON, and so are other fields with a serializer. Rows are plain
// data: nothing here reads or writes a database. A table has the plural of its type's name,
// unless TableName or Names says otherwise.
package models

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"unicode/utf8"

	"gorm.io/gorm/schema"

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

// Names are gorm's names of tables and columns, and those of values of core whose tables have other ones.
type Names struct{ schema.NamingStrategy }

// TableName returns the name of the table for the rows of a type.
func (n Names) TableName(of string) string {
	switch of {
	case "Summary":
		return "session_summaries"
	case "AuditEntry":
		return "audit_log"
	case "Revision":
		return "message_revisions"
	case "Calibration":
		return "model_calibrations"
	}
	return n.NamingStrategy.TableName(of)
}

// RegisterSerializers makes the serializers in the tags of rows known to gorm, which has one list of them
// for the whole program.
func RegisterSerializers() {
	schema.RegisterSerializer("ref", serializer{
		func(stored any, field reflect.Value) error {
			var r Ref
			err := r.Scan(stored)
			field.SetString(string(r))
			return err
		},
		func(v any) (any, error) { return Ref(reflect.ValueOf(v).String()).Value() },
	})
	schema.RegisterSerializer("json", serializer{
		func(stored any, field reflect.Value) error {
			var j JSON
			err := j.Scan(stored)
			if raw, ok := field.Addr().Interface().(*json.RawMessage); ok {
				*raw = json.RawMessage(j)
				return err
			}
			return errors.Join(err, j.Decode(field.Addr().Interface()))
		},
		func(v any) (any, error) {
			if raw, ok := v.(json.RawMessage); ok {
				return RawJSON(raw).Value()
			}
			return EncodeJSON(v).Value()
		},
	})
	schema.RegisterSerializer("native", serializer{
		func(stored any, field reflect.Value) error {
			var j JSON
			var n *nativeSummary
			if err := j.Scan(stored); err == nil && j.Decode(&n) == nil && n != nil { // one that cannot be decoded counts as none
				n.Text = n.Part.Text
				field.Set(reflect.ValueOf((*core.NativeSummary)(n)))
			}
			return nil
		},
		func(v any) (any, error) { return NativeFrom(v.(*core.NativeSummary)).Value() },
	})
	schema.RegisterSerializer("vector", serializer{
		func(stored any, field reflect.Value) error {
			v, err := parseVector(stored)
			field.Set(reflect.ValueOf(v))
			return err
		},
		func(v any) (any, error) { return Vector(v.([]float32)), nil },
	})
}

// serializer stores fields of values of core in columns of another type.
type serializer struct {
	set    func(stored any, field reflect.Value) error // field is zero before
	column func(value any) (any, error)
}

// Scan is part of schema.SerializerInterface.
func (s serializer) Scan(ctx context.Context, f *schema.Field, row reflect.Value, stored any) error {
	field := f.ReflectValueOf(ctx, row)
	field.SetZero()
	if err := s.set(stored, field); err != nil {
		return fmt.Errorf("%s of a row of %s: %w", f.DBName, f.Schema.Table, err)
	}
	return nil
}

// Value is part of schema.SerializerInterface.
func (s serializer) Value(_ context.Context, _ *schema.Field, _ reflect.Value, v any) (any, error) {
	return s.column(v)
}

// nativeSummary is a core.NativeSummary as it is stored. Its words are those of the part.
type nativeSummary struct {
	Part     core.Part  `json:"part"`
	Model    string     `json:"model"`
	Tokens   int        `json:"tokens"`
	Text     string     `json:"-"`
	Usage    core.Usage `json:"usage"`
	Cost     *int64     `json:"cost,omitempty"`
	Refused  string     `json:"refused,omitempty"`
	Account  string     `json:"account"`
	Origin   string     `json:"origin"`
	Setup    string     `json:"setup"`
	Frozen   string     `json:"frozen,omitempty"`
	Start    string     `json:"start"`
	Prefixes []string   `json:"prefixes,omitempty"`
}

// NativeFrom returns the column of a native summary; null for nil.
func NativeFrom(n *core.NativeSummary) JSON { return EncodeJSON((*nativeSummary)(n)) }

// Vector returns a vector as it is stored: float32, little endian; nil for none.
func Vector(v []float32) []byte {
	if len(v) == 0 {
		return nil
	}
	out := make([]byte, 0, 4*len(v))
	for _, f := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(f))
	}
	return out
}

// parseVector reads a stored vector; nil for none.
func parseVector(stored any) (v []float32, err error) {
	b, _ := stored.([]byte)
	if len(b)%4 != 0 {
		return nil, fmt.Errorf("%d bytes are not whole numbers", len(b))
	}
	for len(b) > 0 {
		v, b = append(v, math.Float32frombits(binary.LittleEndian.Uint32(b))), b[4:]
	}
	return v, nil
}
