package handlers

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// maxCursor bounds a cursor in bytes; real ones are far shorter.
const maxCursor = 512

// scopeOf returns the caller's scope.
func scopeOf(c *gin.Context) core.Tenant { return callerOf(c.Request.Context()).Tenant() }

// callerOf returns who makes the request.
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
			faults.Add(name, "has the member %s, which is not a string, a number or a boolean", shortenInput(key))
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
