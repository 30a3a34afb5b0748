package blobs

import (
	"fmt"

	"bobbin/app/core"
)

// at names a field of a part.
func at(i int, field string) string { return fmt.Sprintf("parts[%d].%s", i, field) }

// invalid returns the error about one field.
func invalid(field, format string, args ...any) error {
	fault := core.FieldError{Field: field, Detail: fmt.Sprintf(format, args...)}
	return &core.Error{Kind: core.ErrInvalid, Message: field + " " + fault.Detail, Fields: []core.FieldError{fault}}
}
