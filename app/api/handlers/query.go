package handlers

import (
	"encoding/json"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// maxCursor bounds a cursor in bytes; real ones are far shorter.
const maxCursor = 512

// scopeOf returns the caller's scope.
func scopeOf(c *gin.Context) core.Tenant { return callerOf(c).Tenant() }

// callerOf returns who makes the request.
func callerOf(c *gin.Context) core.Identity {
	id, ok := core.IdentityFrom(c.Request.Context())
	if !ok {
		// A route outside the authenticated group: a bug in routes.go.
		panic("handlers: a request without an identity")
	}
	return id
}

// CheckIDs refuses a path with a malformed id: it cannot exist, so it is not found.
func CheckIDs(c *gin.Context) error {
	noun := map[string]string{"sessions": "session", "runs": "run", "memories": "memory", "blobs": "blob", "deletions": "deletion"}[strings.Split(c.FullPath(), "/")[3]]
	for _, p := range c.Params {
		what := map[string]string{"id": noun, "mid": "message"}[p.Key]
		if what != "" && !core.ValidID(p.Value) {
			return core.Errorf(core.ErrNotFound, "%s %s does not exist", what, shortenInput(p.Value))
		}
	}
	return nil
}

// query reads the query string and collects its faults.
type query struct {
	values url.Values
	faults core.Faults
}

// readQuery refuses unknown and repeated parameters: a misspelled filter would otherwise
// return everything.
func readQuery(c *gin.Context, known ...string) *query {
	values, err := url.ParseQuery(c.Request.URL.RawQuery)
	q := &query{values: values}
	if err != nil {
		q.faults.Add("query", "is not a valid query string: it has an invalid escape or a semicolon")
	}
	for name, given := range values {
		switch {
		case !slices.Contains(known, name):
			q.faults = append(q.faults, unknownName(name, "parameter", known))
		case len(given) > 1:
			q.faults.Add(name, "is given more than once")
		}
	}
	return q
}

// NoQuery refuses all parameters.
func NoQuery(c *gin.Context) error { return readQuery(c).err() }

// textParam returns the parameter, "" if it is not given.
func (q *query) textParam(name string) string { return q.values.Get(name) }

// lookupParam returns the parameter and whether it is given; it may be given empty.
func (q *query) lookupParam(name string) (string, bool) {
	return q.values.Get(name), q.values.Has(name)
}

// numberParam returns a whole number of 0 or more, 0 if the parameter is not given.
func (q *query) numberParam(name string) int64 {
	text, ok := q.lookupParam(name)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		q.faults.Add(name, "must be a whole number from 0 to %d", int64(math.MaxInt64))
		return 0
	}
	return n
}

// boolParam returns the parameter, false if it is not given.
func (q *query) boolParam(name string) bool {
	text, ok := q.lookupParam(name)
	if ok && text != "true" && text != "false" {
		q.faults.Add(name, "must be true or false")
	}
	return text == "true"
}

// optionalBool returns the parameter, nil if it is not given.
func (q *query) optionalBool(name string) *bool {
	if _, ok := q.lookupParam(name); !ok {
		return nil
	}
	return new(q.boolParam(name))
}

// maxMembers bounds the members of a metadata filter.
const maxMembers = 8

// objectParam returns a JSON object of strings, numbers and booleans.
func objectParam(name, text string, faults *core.Faults) json.RawMessage {
	var members map[string]any
	if len(text) > core.MaxFilterBytes || core.CheckJSON([]byte(text), 2*maxMembers+2) != nil ||
		json.Unmarshal([]byte(text), &members) != nil || len(members) == 0 || len(members) > maxMembers {
		faults.Add(name, `must be a JSON object of 1 to %d members in at most %d bytes, such as {"project": "pumps"}`, maxMembers, core.MaxFilterBytes)
		return nil
	}
	for key, value := range members {
		switch value.(type) {
		case string, float64, bool:
		default:
			faults.Add(name, "has the member %s, which is not a string, a number or a boolean", shortenInput(key))
		}
	}
	return json.RawMessage(text)
}

// wordParam returns one of the words, the first one if the parameter is not given.
func (q *query) wordParam(name string, words ...string) string {
	text, ok := q.lookupParam(name)
	if !ok {
		return words[0]
	}
	if !slices.Contains(words, text) {
		q.faults.Add(name, "must be %s", oneOf(words))
	}
	return text
}

// oneOf returns the words as a choice between them.
func oneOf(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// choiceParam returns one of the words, "" if the parameter is not given.
func (q *query) choiceParam(name string, words ...string) string {
	if _, ok := q.lookupParam(name); !ok {
		return ""
	}
	return q.wordParam(name, words...)
}

// pageParams returns the parameters limit and cursor.
func (q *query) pageParams() core.PageQuery {
	p := core.PageQuery{Cursor: q.textParam("cursor")}
	if len(p.Cursor) > maxCursor {
		q.faults.Add("cursor", "is not a next_cursor of this list")
	}
	if text, ok := q.lookupParam("limit"); ok {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > core.MaxPageLimit {
			q.faults.Add("limit", "must be a whole number from 1 to %d", core.MaxPageLimit)
		}
		p.Limit = n
	}
	return p
}

// err returns the error that lists the faults, nil if there are none.
func (q *query) err() error { return invalidError(q.faults) }
