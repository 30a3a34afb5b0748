package repositories

import (
	"encoding/base64"
	"encoding/json"

	"bobbin/app/core"
)

// position is where a page ended. On the wire it is opaque.
type position struct {
	List string `json:"l"`           // of which list
	N    int64  `json:"n"`           // a number, or microseconds since 1970
	ID   string `json:"i,omitempty"` // where N alone is not unique
	M    int64  `json:"m,omitempty"` // likewise, a number
	Key  string `json:"k,omitempty"` // a name, where the order is that of names
}

func (p position) cursor() *string {
	raw, err := json.Marshal(p)
	if err != nil {
		panic("repositories: " + err.Error()) // strings and a number
	}
	s := base64.RawURLEncoding.EncodeToString(raw)
	return &s
}

// parseCursor returns the position of a cursor that one of the lists gave, and
// false for the first page.
func parseCursor(cursor string, lists ...string) (position, bool, error) {
	if cursor == "" {
		return position{}, false, nil
	}
	var p position
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	for _, l := range lists {
		if err == nil && p.List == l && (p.ID == "" || core.ValidID(p.ID)) {
			return p, true, nil
		}
	}
	return position{}, false, &core.Error{Kind: core.ErrInvalid, Err: err,
		Message: "the cursor is not one that this list gave; leave it out to begin with the first page",
		Fields:  []core.FieldError{{Field: "cursor", Detail: "not a cursor of this list"}}}
}

// pageLimit returns how many items a page may have.
func pageLimit(limit int) (int, error) {
	switch {
	case limit == 0:
		return core.DefaultPageLimit, nil
	case limit < 0 || limit > core.MaxPageLimit:
		return 0, &core.Error{Kind: core.ErrInvalid,
			Message: "limit must be between 1 and 200",
			Fields:  []core.FieldError{{Field: "limit", Detail: "must be between 1 and 200"}}}
	}
	return limit, nil
}

// page makes a page of rows, of which one more than limit was asked for.
func page[R, T any](rows []R, limit int, value func(R) (T, error), at func(R) position) (core.Page[T], error) {
	var next *string
	if len(rows) > limit {
		rows = rows[:limit]
		next = at(rows[limit-1]).cursor()
	}
	items, err := values(rows, value)
	return core.Page[T]{Items: items, NextCursor: next}, err
}

// values turns rows into values of core; the result is never nil.
func values[R, T any](rows []R, value func(R) (T, error)) ([]T, error) {
	out := make([]T, 0, len(rows))
	for _, r := range rows {
		v, err := value(r)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// sure makes a value function of one that cannot fail.
func sure[R, T any](value func(R) T) func(R) (T, error) {
	return func(r R) (T, error) { return value(r), nil }
}
