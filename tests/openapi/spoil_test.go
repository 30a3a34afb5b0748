package openapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// mutate changes one thing about a body.
func (g *generator) mutate(value any) any {
	o, ok := value.(map[string]any)
	if !ok || g.chance(5) {
		return g.odd()
	}
	out := maps.Clone(o)
	name := g.oneOf("surprise", "Content", "constructor", "__proto__", "", "\x00")
	if names := slices.Sorted(maps.Keys(o)); len(names) > 0 && g.chance(80) {
		name = g.oneOf(names...)
	}
	if nested, ok := out[name].(map[string]any); ok && g.chance(50) {
		out[name] = g.mutate(nested)
		return out
	}
	out[name] = g.odd()
	return out
}

// odd returns a value of any type.
func (g *generator) odd() any {
	switch g.IntN(12) {
	case 0:
		return nil
	case 1:
		return g.chance(50)
	case 2:
		return json.Number(g.oneOf("1e400", "-1e400", "9223372036854775808", "-1", "0.5", "1E-400", "123456789012345678901234567890"))
	case 3:
		return []any{}
	case 4:
		return []any{map[string]any{}, nil, "x", 1}
	case 5:
		return map[string]any{}
	case 6:
		return map[string]any{"a": map[string]any{"b": []any{1, 2, "\x00"}}}
	case 7:
		return strings.Repeat("long ", 4000)
	case 8:
		return json.RawMessage(strings.Repeat("[", 400) + strings.Repeat("]", 400))
	default:
		return g.nasty()
	}
}

// damage changes the bytes of a body.
func (g *generator) damage(body []byte) []byte {
	if len(body) == 0 {
		return body
	}
	at := g.IntN(len(body))
	if g.chance(2) {
		return []byte(`{"content":"` + strings.Repeat("9", 9<<20) + `"}`)
	}
	switch g.IntN(8) {
	case 0:
		return body[:at]
	case 1:
		return append(slices.Clone(body), " garbage"...)
	case 2:
		return slices.Concat(body[:at], []byte{0xff, 0xc0}, body[at:])
	case 3:
		return slices.Concat(body[:at], []byte{0}, body[at:])
	case 4:
		return append([]byte("\xef\xbb\xbf"), body...)
	case 5:
		return []byte(strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000))
	case 6:
		return []byte(`{"content":"` + strings.Repeat("w", 1<<20+g.IntN(3)) + `"}`)
	default:
		return []byte(g.oneOf("null", "[]", `""`, "7", "{", "}", `{"a":1,"a":2}`, "{'a':1}"))
	}
}

// spoil changes what is around the body.
func (g *generator) spoil(a *asked) {
	switch g.IntN(12) {
	case 0:
		a.method = g.oneOf("PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "FOO", "get")
		a.op = nil
	case 1:
		a.headers = append(a.headers, "Content-Type: "+g.oneOf("text/plain", "application/xml", "application/json; charset=latin1", ";", "application/x-www-form-urlencoded", "application/json, application/json"))
	case 2:
		a.headers = append(a.headers, "Accept: "+g.oneOf("text/html", "text/event-stream;q=0", "*/*", "text/event-stream, application/json", ",,,"))
	case 3:
		a.headers[0] = g.oneOf("Authorization: Bearer wrong", "Authorization: Basic YTpi", "X-API-Key: "+g.me.key, "Authorization: Bearer", "X-Nobody: 1")
		a.foreign = false
	case 4:
		a.headers = append(a.headers, "Expect: 100-continue")
	case 5:
		for i := range 120 {
			a.headers = append(a.headers, fmt.Sprintf("X-Many-%d: %d", i, i))
		}
	case 6:
		a.headers = append(a.headers, "X-Request-Id: "+g.oneOf("mine-1", strings.Repeat("i", 400), "<script>", "a b"), "Origin: https://evil.example", "X-Forwarded-For: 10.0.0.1")
	case 7:
		a.path += g.oneOf("/", "//", "/../..", "/%2e%2e", "/x", "%0a", "?", "/messages/messages")
	case 8:
		a.headers = append(a.headers, "Range: bytes=0-0,2-3", "If-Modified-Since: Sat, 21 Nov 2099 00:00:00 GMT", "If-Match: \"z\"", "If-None-Match: *")
	case 9:
		a.headers = append(a.headers, "Idempotency-Key: one", "Idempotency-Key: two")
	case 10:
		a.headers = append(a.headers, "Upgrade: websocket", "Connection: Upgrade")
	case 11:
		a.cut = len(a.body) > 0
	}
}
