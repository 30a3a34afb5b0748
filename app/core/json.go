package core

// What a JSON text that a caller sends may hold, whatever its length. Decoded, a value
// takes a hundred times the memory of the two or three bytes that it may have as text.
const (
	MaxBodyValues    = 10_000  // of a request; metadata of 16 KiB may have 8,192
	MaxLineValues    = 100_000 // of a message that is imported, one after the other; exports may hold the probabilities of each token
	MaxJSONDepth     = 64      // levels of objects and lists in each other
	MaxMetadataDepth = 32      // of metadata: parsers of other languages must be able to read them
)

// JSONSize returns how many values a JSON text has, at most, and how many levels.
// It allocates nothing and does not check the syntax: it is for texts that are still to be
// decoded.
func JSONSize(text []byte) (values, depth int) {
	values, level, quoted := 1, 0, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quoted && c == '\\':
			i++ // the escaped character
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ',':
			values++
		case c == '{' || c == '[':
			values++
			level++
			depth = max(depth, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return values, depth
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
