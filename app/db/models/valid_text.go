package models

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"bobbin/app/core"
)

// UnstorableMessage is the error for text that PostgreSQL does not store, and SQLite therefore neither.
const UnstorableMessage = "text must be valid UTF-8 without the character U+0000, and JSON must be valid"

// CheckText returns ErrInvalid for text that cannot be stored.
func CheckText(s string) error {
	if strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s) {
		return core.Errorf(core.ErrInvalid, UnstorableMessage)
	}
	return nil
}

// isStorableJSON reports whether PostgreSQL's jsonb accepts raw: it must be valid and must
// not escape U+0000 or an unpaired surrogate.
func isStorableJSON(raw []byte) bool {
	if !json.Valid(raw) || !utf8.Valid(raw) {
		return false
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++ // the escaped character
		if raw[i] != 'u' {
			continue
		}
		unit := codeUnit(raw[i+1:])
		i += 4
		switch {
		case unit == 0 || unit >= 0xDC00 && unit < 0xE000:
			return false
		case unit >= 0xD800 && unit < 0xDC00:
			if !strings.HasPrefix(string(raw[i+1:min(i+3, len(raw))]), `\u`) {
				return false
			}
			if low := codeUnit(raw[i+3:]); low < 0xDC00 || low >= 0xE000 {
				return false
			}
			i += 6
		}
	}
	return true
}

// codeUnit reads the four hexadecimal digits that follow \u in valid JSON.
func codeUnit(digits []byte) int {
	b, err := hex.DecodeString(string(digits[:4]))
	if err != nil {
		return 0
	}
	return int(b[0])<<8 | int(b[1])
}
