package memories

import (
	"strings"

	"bobbin/app/core"
)

// Limits of what callers may send, in bytes.
const (
	MaxContent  = 32 << 10
	MaxMetadata = 16 << 10
	MaxQuery    = 8 << 10
)

// text returns what is stored of a text that the caller wrote, and complains if it
// is too long or says nothing.
func text(f *core.Faults, field, value string, most int) string {
	if strings.TrimSpace(core.CleanText(value)) == "" {
		f.Add(field, "is empty")
	}
	return f.Text(field, value, most)
}

// checked returns the memory as it is to be stored.
func checked(m core.Memory) (core.Memory, error) {
	var f core.Faults
	m.Content = text(&f, "content", m.Content, MaxContent)
	f.Metadata(m.Metadata, MaxMetadata)
	return m, f.Err()
}
