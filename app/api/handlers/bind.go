package handlers

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

// Router registers the handler of an operation.
type Router func(op ops.Operation, handler func(*gin.Context) error)

// bind registers a function that answers an operation for the caller, or for the user whom the request
// names.
func bind[In, Out any](r Router, op ops.Op[In, Out], answer func(ctx context.Context, tenant core.Tenant, in In) (Out, error)) {
	bindRaw(r, op, func(c *gin.Context, in In) error {
		tenant := scopeOf(c)
		if of, ok := any(in).(interface{ User() string }); ok {
			var err error
			if tenant, err = userScope(tenant, of.User()); err != nil {
				return err
			}
		}
		out, err := answer(c.Request.Context(), tenant, in)
		if err != nil {
			return err
		}
		status := http.StatusOK
		switch {
		case op.Created:
			status = http.StatusCreated
		case op.IsDone != nil && !op.IsDone(out):
			status = http.StatusAccepted
		}
		if op.Location != "" {
			c.Header("Location", op.Location+reflect.ValueOf(out).FieldByName("ID").String())
		}
		if page, ok := any(&out).(pager); ok {
			return writeJSON(c, status, page)
		}
		if _, none := any(out).(ops.Nothing); none {
			WriteNothing(c, http.StatusNoContent)
			return nil
		}
		return writeJSON(c, status, out)
	})
}

// bindDone is bind for an operation without an answer.
func bindDone[In any](r Router, op ops.Op[In, ops.Nothing], do func(ctx context.Context, tenant core.Tenant, in In) error) {
	bind(r, op, func(ctx context.Context, tenant core.Tenant, in In) (ops.Nothing, error) {
		return ops.Nothing{}, do(ctx, tenant, in)
	})
}

// bindRaw registers a function that writes the answer of an operation itself, such as a stream.
func bindRaw[In, Out any](r Router, op ops.Op[In, Out], answer func(c *gin.Context, in In) error) {
	r(op.Operation, func(c *gin.Context) error {
		var in In
		if err := readParams(c, &in); err != nil {
			return err
		}
		if method := op.Method(); method != http.MethodGet && method != http.MethodDelete {
			if err := readInto(c, &in); err != nil {
				return err
			}
		}
		return answer(c, in)
	})
}

// checked is a request with rules about several of its values.
type checked interface{ Check(faults *core.Faults) }

// readParams reads the values in the path and the query into the struct that into points to. It refuses
// unknown and repeated parameters: a misspelled filter would otherwise return everything.
func readParams(c *gin.Context, into any) error {
	values, err := url.ParseQuery(c.Request.URL.RawQuery)
	var faults core.Faults
	if err != nil {
		faults.Add("query", "is not a valid query string: it has an invalid escape or a semicolon")
	}
	var known []string
	target := reflect.ValueOf(into).Elem()
	for _, f := range ops.Fields(target.Type()) {
		value := target.FieldByIndex(f.Index)
		switch f.Place {
		case ops.InPath:
			if err := setPathValue(value, f, c.Param(f.Name)); err != nil {
				return err
			}
		case ops.InQuery:
			known = append(known, f.Name)
			if given, ok := values[f.Name]; ok {
				setParam(value, f, given[0], &faults)
			}
		}
	}
	for name, given := range values {
		switch {
		case !slices.Contains(known, name):
			faults = append(faults, unknownName(name, "parameter", known))
		case len(given) > 1:
			faults.Add(name, "is given more than once")
		}
	}
	if in, ok := into.(checked); ok {
		in.Check(&faults)
	}
	return invalidError(faults)
}

// setPathValue sets a value of the path. What cannot exist is not found.
func setPathValue(into reflect.Value, f ops.Field, text string) error {
	valid := f.Noun == "" || core.ValidID(text)
	if into.Kind() == reflect.Int {
		n, err := strconv.ParseInt(text, 10, 32)
		low, _ := strconv.ParseInt(f.Tag.Get("min"), 10, 32)
		valid = err == nil && n >= low
		into.SetInt(n)
	} else {
		into.SetString(text)
	}
	if !valid {
		return core.Errorf(core.ErrNotFound, "%s %s does not exist", f.Noun, core.Clip(text, maxShown))
	}
	return nil
}

func setParam(into reflect.Value, f ops.Field, text string, faults *core.Faults) {
	enum := f.Enum()
	switch {
	case into.Kind() == reflect.Pointer: // nil = not given
		into.Set(reflect.New(into.Type().Elem()))
		setParam(into.Elem(), f, text, faults)
	case enum != nil && !slices.Contains(enum, text):
		faults.Add(f.Name, "must be %s", oneOf(enum))
	case into.Kind() == reflect.Bool && enum != nil:
		into.SetBool(text == f.Tag.Get("word"))
	case into.Kind() == reflect.Bool:
		if text != "true" && text != "false" {
			faults.Add(f.Name, "must be true or false")
		}
		into.SetBool(text == "true")
	case into.Type() == reflect.TypeFor[time.Time]():
		into.Set(reflect.ValueOf(timeParam(f, text, faults)))
	case into.Type() == reflect.TypeFor[json.RawMessage]():
		into.SetBytes(objectParam(f.Name, text, faults))
	case f.Name == "cursor" && len(text) > maxCursor:
		faults.Add(f.Name, "is not a next_cursor of this list")
	case into.CanInt():
		low, high := limitOf(f, "min", 0), limitOf(f, "max", 1<<63-1)
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < low || n > high {
			faults.Add(f.Name, "must be a whole number from %d to %d", low, high)
		}
		into.SetInt(n)
	default:
		into.SetString(text)
	}
}

func limitOf(f ops.Field, name string, none int64) int64 {
	if n, err := strconv.ParseInt(f.Tag.Get(name), 10, 64); err == nil {
		return n
	}
	return none
}

// timeParam returns a time, or midnight UTC of a date where the field takes one.
func timeParam(f ops.Field, text string, faults *core.Faults) time.Time {
	layouts, example := []string{time.RFC3339}, "a time such as 2026-01-31T12:00:00Z"
	if f.Tag.Get("format") == "day" {
		layouts, example = append(layouts, time.DateOnly), "a day such as 2026-01-31, or "+example
	}
	for _, layout := range layouts {
		// Only years of four digits can be stored.
		if t, err := time.Parse(layout, text); err == nil && t.UTC().Year() >= 1 && t.UTC().Year() <= 9999 {
			return t.UTC()
		}
	}
	faults.Add(f.Name, "must be %s", example)
	return time.Time{}
}

// maxCursor bounds a cursor in bytes; real ones are far shorter.
const maxCursor = 512

func scopeOf(c *gin.Context) core.Tenant { return callerOf(c.Request.Context()).Tenant() }

func callerOf(ctx context.Context) core.Identity {
	id, ok := core.IdentityFrom(ctx)
	if !ok {
		// A route outside the authenticated group: a bug in routes.go.
		panic("handlers: a request without an identity")
	}
	return id
}

// NoQuery refuses all parameters.
func NoQuery(c *gin.Context) error { return readParams(c, &struct{}{}) }

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
			faults.Add(name, "has the member %s, which is not a string, a number or a boolean", core.Clip(key, maxShown))
		}
	}
	return json.RawMessage(text)
}

// oneOf returns the words as a choice between them.
func oneOf(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
