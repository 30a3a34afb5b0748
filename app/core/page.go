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
	Limit  int    `query:"limit" min:"1" max:"200" default:"50" doc:"Items per page."` // 0 = DefaultPageLimit
	Cursor string `query:"cursor" max:"512" doc:"The next_cursor of the previous page."`
	Bytes  int64  // most bytes of the page's items; 0 = what the list has at most
}

// Page is one page of a list in its total order.
type Page[T any] struct {
	Items      []T     `json:"items"` // never nil
	NextCursor *string `json:"next_cursor" schema:"NextCursor"`
}

// Replace puts what view returns for an item, also a T, in its place. Without items they are an empty
// list afterwards.
func (p *Page[T]) Replace(view func(item any) (any, error)) error {
	if p.Items == nil {
		p.Items = []T{}
	}
	for i, item := range p.Items {
		shown, err := view(item)
		if err != nil {
			return err
		}
		p.Items[i] = shown.(T)
	}
	return nil
}

// EachPage calls do with every item of a list, page by page.
func EachPage[T any](list func(cursor string) (Page[T], error), do func(T) error) error {
	for cursor := ""; ; {
		page, err := list(cursor)
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			if err := do(item); err != nil {
				return err
			}
		}
		if page.NextCursor == nil {
			return nil
		}
		cursor = *page.NextCursor
	}
}
