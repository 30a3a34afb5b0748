package models

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"

	"gorm.io/gorm/schema"

	"bobbin/app/core"
)

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
