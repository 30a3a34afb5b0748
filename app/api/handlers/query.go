package handlers

import (
	"math"
	"net/url"
	"slices"
	"strconv"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// maxCursor bounds a cursor, in bytes; ours are far shorter.
const maxCursor = 512

// scopeOf returns the rows that the caller may touch.
func scopeOf(c *gin.Context) core.Scope { return callerOf(c).Scope() }

// callerOf returns who makes the request.
func callerOf(c *gin.Context) core.Identity {
	id, ok := core.IdentityFrom(c.Request.Context())
	if !ok {
		// A route outside the authenticated group: a fault of routes.go.
		panic("handlers: a request without an identity")
	}
	return id
}

// idParam returns the id in the path. One of another form cannot exist, so it is
// answered like any other that does not.
func idParam[T ~string](c *gin.Context, what string) (T, error) {
	id := T(c.Param("id"))
	if !core.ValidID(id) {
		return "", core.Errorf(core.ErrNotFound, "%s %s does not exist", what, shorten(string(id)))
	}
	return id, nil
}

// query reads the query string and gathers what is wrong with it.
type query struct {
	values url.Values
	faults core.Faults
}

// readQuery refuses parameters that are not known, and those given twice: a
// misspelled filter would otherwise answer with everything.
func readQuery(c *gin.Context, known ...string) *query {
	values, err := url.ParseQuery(c.Request.URL.RawQuery)
	q := &query{values: values}
	if err != nil {
		q.faults.Add("query", "is not a query string: it has a wrong escape or a semicolon")
	}
	for name, given := range values {
		switch {
		case !slices.Contains(known, name):
			q.faults = append(q.faults, unknown(name, "parameter", known))
		case len(given) > 1:
			q.faults.Add(name, "is given more than once")
		}
	}
	return q
}

// NoQuery refuses every parameter, for requests that take none.
func NoQuery(c *gin.Context) error { return readQuery(c).err() }

// text returns the parameter, "" if it is not given.
func (q *query) text(name string) string { return q.values.Get(name) }

// number returns a whole number of 0 or more, 0 if the parameter is not given.
func (q *query) number(name string) int64 {
	text := q.values.Get(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		q.faults.Add(name, "must be a whole number from 0 to %d", int64(math.MaxInt64))
		return 0
	}
	return n
}

// flag returns whether the parameter is true; false if it is not given.
func (q *query) flag(name string) bool {
	switch q.values.Get(name) {
	case "", "false":
		return false
	case "true":
		return true
	default:
		q.faults.Add(name, "must be true or false")
		return false
	}
}

// page returns limit and cursor.
func (q *query) page() core.PageQuery {
	p := core.PageQuery{Cursor: q.text("cursor")}
	if len(p.Cursor) > maxCursor {
		q.faults.Add("cursor", "is not one that was given out")
	}
	if text := q.text("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > core.MaxPageLimit {
			q.faults.Add("limit", "must be a whole number from 1 to %d", core.MaxPageLimit)
		}
		p.Limit = n
	}
	return p
}

// err returns what is wrong, nil if nothing is.
func (q *query) err() error { return invalid(q.faults) }
