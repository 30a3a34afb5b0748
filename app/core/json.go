package core

import (
	"bytes"
	"encoding/json"
)

// What a JSON text that a caller sends may hold, whatever its length. Decoded, a value
// takes a hundred times the memory of the two or three bytes that it may have as text.
const (
	MaxBodyValues    = 10_000  // of a request; metadata of 16 KiB may have 8,192
	MaxLineValues    = 100_000 // of a message that is imported, one after the other; exports may hold the probabilities of each token
	MaxJSONDepth     = 64      // levels of objects and lists in each other
	MaxMetadataDepth = 32      // of metadata: parsers of other languages must be able to read them
)

// JSONValueBytes is the memory that a value of a JSON text takes while it is decoded and stored,
// besides its text: estimated for histories of messages of one character, which have three values
// each, and with imported lines, which have two.
const JSONValueBytes = 320

// JSONMemory returns the memory that a JSON text with that many values takes while it is decoded
// and stored.
func JSONMemory(bytes int64, values int) int64 { return bytes + JSONValueBytes*int64(values) }

// JSONSize returns how many values a JSON text has, at most, and how many levels.
// It allocates nothing and does not check the syntax: it is for texts that are still to be
// decoded.
func JSONSize(text []byte) (values, depth int) {
	var c JSONCounter
	_, _ = c.Write(text)
	return c.Values(), c.depth
}

// JSONCounter counts the values of JSON texts that are written to it, as JSONSize does. The zero
// value is ready for use.
type JSONCounter struct {
	more, level, depth int
	quoted, escaped    bool
}

// Values returns how many values there are, at most.
func (c *JSONCounter) Values() int { return c.more + 1 }

// jsonSigns are the bytes that JSONCounter looks at.
//
//nolint:gochecknoglobals // immutable
var jsonSigns = [256]bool{'\n': true, '\\': true, '"': true, ',': true, '{': true, '[': true, '}': true, ']': true}

// Write is part of io.Writer. It never fails.
func (c *JSONCounter) Write(text []byte) (int, error) {
	s := *c
	for _, b := range text {
		switch {
		case !jsonSigns[b] && !s.escaped: // most bytes
		case s.escaped:
			s.escaped = false
		case b == '\n': // no text has one: what a broken line left open ends here
			s.quoted = false
		case s.quoted && b == '\\':
			s.escaped = true
		case b == '"':
			s.quoted = !s.quoted
		case s.quoted:
		case b == ',':
			s.more++
		case b == '{' || b == '[':
			s.more++
			s.level++
			s.depth = max(s.depth, s.level)
		case b == '}' || b == ']':
			s.level--
		}
	}
	*c = s
	return len(text), nil
}

// EncodeJSON returns a value as JSON, in which <, > and & stay as they are. What answers with it says
// its media type and nosniff, so that browsers do not read it as HTML.
func EncodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// CheckJSON returns ErrInvalid for a JSON text with more than that many values, or with too
// many levels, to be decoded; the message goes on after the name of the text.
func CheckJSON(text []byte, maxValues int) error {
	values, depth := JSONSize(text)
	switch {
	case depth > MaxJSONDepth:
		return Errorf(ErrInvalid, "is nested more than %d levels deep", MaxJSONDepth)
	case values > maxValues:
		return Errorf(ErrInvalid, "has more than %d values", maxValues)
	default:
		return nil
	}
}
