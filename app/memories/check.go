package memories

import (
	"encoding/json"
	"fmt"
	"strings"

	"bobbin/app/core"
)

// Limits of what callers may send, in bytes.
const (
	MaxContent  = 32 << 10
	MaxMetadata = 16 << 10
	MaxQuery    = 8 << 10
)

// faults collects what is wrong with the inputs of one request.
type faults []core.FieldError

func (f *faults) add(field, format string, args ...any) {
	*f = append(*f, core.FieldError{Field: field, Detail: fmt.Sprintf(format, args...)})
}

// err returns all faults as one ErrInvalid, or nil if there are none.
func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	details := make([]string, 0, len(f))
	for _, fault := range f {
		details = append(details, fault.Field+" "+fault.Detail)
	}
	return &core.Error{Kind: core.ErrInvalid, Message: strings.Join(details, "; "), Fields: f}
}

// text returns what is stored of a text that the caller wrote, and complains if it
// is too long or says nothing.
func (f *faults) text(field, value string, most int) string {
	value = core.CleanText(value)
	switch {
	case strings.TrimSpace(value) == "":
		f.add(field, "is empty")
	case len(value) > most:
		f.add(field, "has %d bytes, at most %d are allowed", len(value), most)
	}
	return value
}

// metadata complains about anything but a small JSON object or nothing.
func (f *faults) metadata(raw json.RawMessage) {
	var object map[string]json.RawMessage
	switch {
	case len(raw) == 0:
	case len(raw) > MaxMetadata:
		f.add("metadata", "has %d bytes, at most %d are allowed", len(raw), MaxMetadata)
	case json.Unmarshal(raw, &object) != nil || object == nil:
		f.add("metadata", "must be a JSON object")
	}
}

// checked returns the memory as it is to be stored.
func checked(m core.Memory) (core.Memory, error) {
	var f faults
	m.Content = f.text("content", m.Content, MaxContent)
	f.metadata(m.Metadata)
	return m, f.err()
}
