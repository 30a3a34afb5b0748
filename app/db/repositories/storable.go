package repositories

import (
	"encoding/hex"
	"encoding/json"
	"reflect"
	"strings"
	"unicode/utf8"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// unstorable is what a caller hears of text that no database here takes.
const unstorable = "text must be valid UTF-8 without the character U+0000, and JSON must be valid"

// insert writes the rows, a pointer to a row or to a slice of rows, in one
// statement. Nothing to write is no statement.
func insert(tx *gorm.DB, rows any) error {
	if v := reflect.Indirect(reflect.ValueOf(rows)); v.Kind() == reflect.Slice && v.Len() == 0 {
		return nil
	}
	if !storable(reflect.ValueOf(rows)) {
		return core.Errorf(core.ErrInvalid, unstorable)
	}
	return tx.Create(rows).Error
}

// checked returns changes if all its texts can be stored.
func checked(changes map[string]any) (map[string]any, error) {
	if !storable(reflect.ValueOf(changes)) {
		return nil, core.Errorf(core.ErrInvalid, unstorable)
	}
	return changes, nil
}

// storable reports whether all texts in v can be stored: PostgreSQL refuses
// U+0000 and broken UTF-8, as text and as escapes in JSON, where SQLite takes
// them. So the check is ours, the same for both.
func storable(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || storable(v.Elem())
	case reflect.String:
		return storableText(v.String())
	case reflect.Slice:
		if j, ok := v.Interface().(models.JSON); ok {
			return j == nil || storableJSON(j)
		}
		return v.Type().Elem().Kind() == reflect.Uint8 || all(v.Len(), v.Index)
	case reflect.Map:
		keys := v.MapKeys()
		return all(len(keys), func(i int) reflect.Value { return v.MapIndex(keys[i]) })
	case reflect.Struct:
		return !strings.HasPrefix(v.Type().PkgPath(), "bobbin/") || all(v.NumField(), v.Field)
	}
	return true
}

func all(n int, at func(int) reflect.Value) bool {
	for i := range n {
		if !storable(at(i)) {
			return false
		}
	}
	return true
}

func storableText(s string) bool {
	return strings.IndexByte(s, 0) < 0 && utf8.ValidString(s)
}

// storableJSON reports whether PostgreSQL's jsonb takes raw: valid, and without
// the escapes of U+0000 and of half a surrogate pair.
func storableJSON(raw []byte) bool {
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

// codeUnit reads the four hexadecimal digits that valid JSON has after \u.
func codeUnit(digits []byte) int {
	b, err := hex.DecodeString(string(digits[:4]))
	if err != nil {
		return 0
	}
	return int(b[0])<<8 | int(b[1])
}
