package models

import (
	"database/sql/driver"
	"fmt"
)

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
	case []byte:
		*r = Ref(v)
	default:
		return fmt.Errorf("a %T is not an id", v)
	}
	return nil
}
