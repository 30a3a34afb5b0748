// Package ops is the table of the operations of the HTTP API: for each its route, who may call it,
// what goes in and comes out, and the texts that describe it. Routes, the client, the command line
// and the OpenAPI document follow from it.
//
// An operation takes one struct. The tags of its fields say where a value is in the request, and
// everything that the document says of it:
//
//	path:"id,session"     a part of the path; the noun is for "session … does not exist"
//	query:"limit"         a parameter of the query string
//	json:"title"          a member of the body
//	doc:"…" example:"…"   texts; 'word' stands for a word in backquotes
//	enum:"a,b"            the values of a string
//	word:"title"          the value of a string that stands for true, of a bool
//	min:"1" max:"200"     limits of a number, or of a text in bytes
//	pattern:"^[a-z]+$"    of a text
//	schema:"Name"         the schema of the document's components that the value has; - = not in the document
//	format:"day"          of a time: a day, too; of JSON in a query: a text
//	default:"50"          what holds when the value is not given
//	required:"true"       the value must be given
//
// Fields without such a tag, or with json:"-", are not part of the request. Embedded structs count
// as their fields. The tags of what comes out are the same; fields without omitempty are required.
package ops

import (
	"net/http"
	"reflect"
	"strings"
	"sync"

	"bobbin/app/core"
)

// Operation is what is known of an operation without its types.
type Operation struct {
	ID          string
	Route       string // method and path: POST /api/v1/sessions/{id}/fork
	Tag         string
	Summary     string
	Description string
	Scope       core.Scopes // that the caller's key needs
	OwnersOnly  bool        // end users may not call it
	Returns     string      // what the answer is, in a few words
	Accepted    string      // what the answer with status 202 is; empty = there is none
	Example     string      // of a body, JSON
	CallsModel  bool        // its failure is a 502
	Created     bool        // the answer has status 201
	Location    string      // of its answers, before the ID; empty = they have no such header
	In, Out     reflect.Type
}

// Method returns the HTTP method.
func (o Operation) Method() string {
	method, _, _ := strings.Cut(o.Route, " ")
	return method
}

// Path returns the path with its parameters in braces.
func (o Operation) Path() string {
	_, path, _ := strings.Cut(o.Route, " ")
	return path
}

// Op is an operation that takes an In and answers with an Out.
type Op[In, Out any] struct {
	Operation
	IsDone func(Out) bool // false = status 202; nil = it always is
}

// Nothing is the Out of operations that answer with status 204.
type Nothing struct{}

// table is all operations. It is complete when the package is initialized.
//
//nolint:gochecknoglobals // a constant table
var table []Operation

// All returns the table; the caller must not modify it.
func All() []Operation { return table }

func describe[In, Out any](o Operation) Op[In, Out] {
	o.In, o.Out = reflect.TypeFor[In](), reflect.TypeFor[Out]()
	table = append(table, o)
	return Op[In, Out]{Operation: o}
}

// until returns the operation with a status 202 of answers that are not done.
func until[In, Out any](op Op[In, Out], done func(Out) bool) Op[In, Out] {
	op.IsDone = done
	return op
}

// Place is where a request has a value.
type Place string

// The places.
const (
	InPath  Place = "path"
	InQuery Place = "query"
	InBody  Place = "body"
)

// Field is a value of a request.
type Field struct {
	Name  string
	Place Place
	Noun  string // of an id in the path
	Index []int  // of the struct's field
	Type  reflect.Type
	Tag   reflect.StructTag // doc, enum, word, min, max, default, required, example
}

// Enum returns the values that the field may have, nil = any.
func (f Field) Enum() []string {
	words := f.Tag.Get("enum")
	if words == "" {
		words = f.Tag.Get("word")
	}
	if words == "" {
		return nil
	}
	return strings.Split(words, ",")
}

//nolint:gochecknoglobals // follows from the types; every request asks for it
var fields sync.Map // []Field by the type

// Fields returns the values of a request, in the order of the struct; the caller must not modify them.
func Fields(in reflect.Type) []Field {
	known, ok := fields.Load(in)
	if !ok {
		known, _ = fields.LoadOrStore(in, fieldsOf(in))
	}
	return known.([]Field)
}

func fieldsOf(in reflect.Type) []Field {
	var out []Field
	for _, field := range reflect.VisibleFields(in) {
		f := Field{Index: field.Index, Type: field.Type, Tag: field.Tag}
		if f.Name, f.Noun, _ = strings.Cut(field.Tag.Get("path"), ","); f.Name != "" {
			f.Place = InPath
		} else if f.Name = field.Tag.Get("query"); f.Name != "" {
			f.Place = InQuery
		} else if f.Name, _, _ = strings.Cut(field.Tag.Get("json"), ","); f.Name != "" && f.Name != "-" {
			f.Place = InBody
		} else {
			continue
		}
		out = append(out, f)
	}
	return out
}

// Problem is an error as in RFC 9457, with the members code, request_id and errors.
type Problem struct {
	Type      string            `json:"type"` // urn:bobbin:problem: and the code
	Title     string            `json:"title"`
	Status    int               `json:"status"`
	Detail    string            `json:"detail"`
	Instance  string            `json:"instance,omitempty"` // path of the request
	Code      string            `json:"code"`               // stable, for programs
	RequestID string            `json:"request_id,omitempty"`
	Errors    []core.FieldError `json:"errors,omitempty"`
}

// ErrorKind is how errors of a kind are answered.
type ErrorKind struct {
	Kind   error
	Status int
	Title  string
	Code   string // of those without a code of their own
}

// Problem returns the answer to an error of the kind with the code.
func (k ErrorKind) Problem(code, detail string) Problem {
	return Problem{Type: "urn:bobbin:problem:" + code, Title: k.Title, Status: k.Status, Detail: detail, Code: code}
}

// ErrorKinds returns how errors are answered. Of kinds with one status the first has the other codes.
func ErrorKinds() []ErrorKind {
	return []ErrorKind{
		{core.ErrInvalid, http.StatusUnprocessableEntity, "Invalid request", "invalid"},
		{core.ErrContextFloor, http.StatusUnprocessableEntity, "Does not fit the context window", "context_floor"},
		{core.ErrUnauthorized, http.StatusUnauthorized, "Unauthorized", "unauthorized"},
		{core.ErrForbidden, http.StatusForbidden, "Forbidden", "forbidden"},
		{core.ErrNotFound, http.StatusNotFound, "Not found", "not_found"},
		{core.ErrConflict, http.StatusConflict, "Conflict", "conflict"},
		{core.ErrStale, http.StatusConflict, "Changed concurrently", "stale"},
		{core.ErrCanceled, http.StatusConflict, "Canceled", "canceled"},
		{core.ErrTooLarge, http.StatusRequestEntityTooLarge, "Too large", "too_large"},
		{core.ErrUnprocessable, http.StatusUnprocessableEntity, "Unprocessable request", "unprocessable"},
		{core.ErrRateLimited, http.StatusTooManyRequests, "Too many requests", "rate_limited"},
		{core.ErrUnavailable, http.StatusServiceUnavailable, "Unavailable", "unavailable"},
		{core.ErrModel, http.StatusBadGateway, "Language model error", "model"},
		{core.ErrTimeout, http.StatusGatewayTimeout, "Timeout", "timeout"},
	}
}
