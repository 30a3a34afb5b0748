package core

// Limits of a page.
const (
	DefaultPageLimit = 50
	MaxPageLimit     = 200
)

// PageQuery asks for one page of a list.
type PageQuery struct {
	Limit  int    // 1 to MaxPageLimit; 0 = DefaultPageLimit
	Cursor string // NextCursor of the page before; empty = the first page
}

// Page is one page of a list in its total order.
type Page[T any] struct {
	Items      []T     `json:"items"` // never nil
	NextCursor *string `json:"next_cursor"`
}
