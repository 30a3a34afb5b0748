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

// unstorableMessage is the error for text that neither database stores.
const unstorableMessage = "text must be valid UTF-8 without the character U+0000, and JSON must be valid"

// insertRows inserts the rows, a pointer to a row or to a slice of rows, in one statement.
// An empty slice needs no statement.
func insertRows(tx *gorm.DB, rows any) error {
	if v := reflect.Indirect(reflect.ValueOf(rows)); v.Kind() == reflect.Slice && v.Len() == 0 {
		return nil
	}
	if !isStorable(reflect.ValueOf(rows)) {
		return core.Errorf(core.ErrInvalid, unstorableMessage)
	}
	return tx.Create(rows).Error
}

// storableChanges returns changes, or ErrInvalid if one of the texts cannot be stored.
func storableChanges(changes map[string]any) (map[string]any, error) {
	if !isStorable(reflect.ValueOf(changes)) {
		return nil, core.Errorf(core.ErrInvalid, unstorableMessage)
	}
	return changes, nil
}

// isStorable reports whether all texts in v can be stored. PostgreSQL refuses U+0000 and
// invalid UTF-8, as text and as escapes in JSON; SQLite accepts both. This check is the
// same for both.
func isStorable(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || isStorable(v.Elem())
	case reflect.String:
		return isStorableText(v.String())
	case reflect.Slice:
		if j, ok := v.Interface().(models.JSON); ok {
			return j == nil || isStorableJSON(j)
		}
		return v.Type().Elem().Kind() == reflect.Uint8 || allStorable(v.Len(), v.Index)
	case reflect.Map:
		keys := v.MapKeys()
		return allStorable(len(keys), func(i int) reflect.Value { return v.MapIndex(keys[i]) })
	case reflect.Struct:
		return !strings.HasPrefix(v.Type().PkgPath(), "bobbin/") || allStorable(v.NumField(), v.Field)
	}
	return true
}

func allStorable(n int, at func(int) reflect.Value) bool {
	for i := range n {
		if !isStorable(at(i)) {
			return false
		}
	}
	return true
}

func isStorableText(s string) bool {
	return strings.IndexByte(s, 0) < 0 && utf8.ValidString(s)
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
