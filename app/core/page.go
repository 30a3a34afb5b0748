package core

// Limits of a page.
const (
	DefaultPageLimit = 50
	MaxPageLimit     = 200
)

// Most bytes of the items of a page. One item is on every page, however large it is.
const (
	MaxPageBytes        = 1 << 20 // of all lists but that of messages
	MaxMessagePageBytes = 8 << 20 // of messages
)

// PageQuery asks for one page of a list.
type PageQuery struct {
	Limit  int    // 1 to MaxPageLimit; 0 = DefaultPageLimit
	Bytes  int64  // most bytes of the page's items; 0 = what the list has at most
	Cursor string // NextCursor of the page before; empty = the first page
}

// Page is one page of a list in its total order.
type Page[T any] struct {
	Items      []T     `json:"items"` // never nil
	NextCursor *string `json:"next_cursor"`
}
