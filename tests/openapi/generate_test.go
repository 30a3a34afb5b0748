package openapi_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"

	"bobbin/tests/document"
)

// wildness says how far a generated request is from what the document asks for.
type wildness int

const (
	valid  wildness = iota // as the document says
	nearly                 // but for one thing
	wild
)

// generator makes requests from the document. What it makes follows from its numbers
// and the ids that there are.
type generator struct {
	*rand.Rand
	doc     *document.Document
	me      *owner
	other   *owner
	cursors *pool // of all lists and owners
}

// asked is a generated request.
type asked struct {
	op      *document.Operation
	method  string
	path    string // escaped
	query   string
	headers []string
	body    []byte
	cut     bool // the body breaks off in the middle
	foreign bool // the path names what belongs to the other owner
	wild    wildness
}

func (g *generator) oneOf(from ...string) string { return from[g.IntN(len(from))] }
func (g *generator) chance(percent int) bool     { return g.IntN(100) < percent }

// next makes a request.
func (g *generator) next() asked {
	op := g.operation()
	a := asked{op: op, method: op.Method, wild: []wildness{valid, valid, nearly, nearly, wild}[g.IntN(5)]}
	a.path, a.foreign = g.path(op, a.wild)
	var pairs []string
	for _, p := range op.Params {
		if p.In != "query" || !p.Required && g.chance(60) {
			continue
		}
		value := fmt.Sprint(g.value(p.Schema.Raw, p.Name, 0))
		if a.wild != valid && g.chance(40) {
			value = g.nasty()
			value = value[:min(len(value), 3000)] // a longer line is none of HTTP
		}
		pairs = append(pairs, p.Name+"="+url.QueryEscape(value))
	}
	if a.wild == wild && strings.HasPrefix(op.Path, "/api/") && g.chance(30) { // probes take whatever is added
		pairs = append(pairs, g.oneOf("limti=5", "limit=5&limit=6", "a=%zz", "q=%00", "cursor=%ff", ";", "&&=&", "user_id="+strings.Repeat("u", 5000), "limit=5%00", "%00=%00"))
	}
	a.query = strings.Join(pairs, "&")
	a.headers = []string{"Authorization: Bearer " + g.me.key}
	for _, p := range a.op.Params {
		if p.In != "header" || g.chance(70) {
			continue
		}
		value := map[string]string{
			"Prefer": g.oneOf("respond-async", "wait=1", "wait=0", "wait=-1, respond-async", "handling=lenient"), "Last-Event-ID": g.oneOf("0", "1", "3", "99999"),
			"Idempotency-Key": fmt.Sprintf("key-%d", g.IntN(400)), "If-None-Match": g.oneOf(`"x"`, "*", `W/"y"`), "Range": g.oneOf("bytes=0-3", "bytes=5-", "bytes=900-", "bytes=-2", "lines=1"),
		}[p.Name]
		if a.wild != valid && g.chance(40) {
			value = g.oneOf("-1", "1e9", strings.Repeat("k", 300), "ünïcode", "9223372036854775808", " ", "a\tb", "bytes=9-1")
		}
		a.headers = append(a.headers, p.Name+": "+value)
	}
	if len(a.op.Answers[200].Events) > 0 && len(a.op.Answers[200].Body) > 1 {
		switch g.IntN(6) {
		case 0:
			a.headers = append(a.headers, "Accept: text/event-stream")
		case 1, 2, 3:
			a.headers = append(a.headers, "Prefer: respond-async")
		}
	}
	if op.Body != nil && g.chance(90) {
		g.fillBody(&a)
	}
	if a.wild == wild {
		g.spoil(&a)
	}
	return a
}

// operation picks one: those that make something more often than those that end it.
func (g *generator) operation() *document.Operation {
	for {
		op := g.doc.Operations[g.IntN(len(g.doc.Operations))]
		often := map[string]int{"POST": 100, "PATCH": 100, "DELETE": 20}[op.Method]
		if often == 0 {
			often = 60
		}
		if g.chance(often) {
			return op
		}
	}
}

func (g *generator) path(op *document.Operation, w wildness) (path string, foreign bool) {
	path = op.Path
	if pair := g.me.ids.pick("session/message", g.IntN(pooled)); strings.Contains(path, "{mid}") && pair != "" && g.chance(75) {
		session, message, _ := strings.Cut(pair, "/")
		path = strings.NewReplacer("{id}", session, "{mid}", message).Replace(path)
	}
	for _, p := range op.Params {
		if p.In != "path" || !strings.Contains(path, "{"+p.Name+"}") {
			continue
		}
		value, theirs := g.pathValue(op, p, w)
		foreign = foreign || theirs
		path = strings.Replace(path, "{"+p.Name+"}", value, 1)
	}
	return path, foreign
}

func (g *generator) pathValue(op *document.Operation, p document.Param, w wildness) (value string, foreign bool) {
	kind := kindOf(op.Path, p.Name)
	if w != valid && g.chance(25) {
		return g.oneOf("x", "%00", "%ff%fe", "..%2f..%2fetc%2fpasswd", strings.Repeat("9", 3000), "-1", "0", "1e9", "9223372036854775808", "null", "%20", "a;b",
			"01a1fd1b-c2ab-74fe-af4a-73c58ae3b243", "01A1FD1B-C2AB-74FE-AF4A-73C58AE3B243", url.PathEscape("日本"), "{id}", "*"), false
	}
	switch {
	case kind != "" && g.chance(12):
		if id := g.other.ids.pick(kind, g.IntN(pooled)); id != "" {
			return id, true
		}
	case kind == "" && p.Name == "version":
		return g.oneOf("0", "1", "2", "3"), false
	case kind == "" && p.Name == "name":
		return g.oneOf("assistant", "assistant", "nobody"), false
	case kind == "":
		return url.PathEscape(fmt.Sprint(g.value(p.Schema.Raw, "", 0))), false
	}
	if id := g.me.ids.pick(kind, g.IntN(pooled)); id != "" {
		return id, false
	}
	return "x", false
}

// fillBody makes a body of one of the media types.
func (g *generator) fillBody(a *asked) {
	types := make([]string, 0, len(a.op.Body))
	for media := range a.op.Body {
		types = append(types, media)
	}
	slices.Sort(types)
	media := g.oneOf(types...)
	value := g.value(a.op.Body[media].Raw, "", 0)
	if o, ok := value.(map[string]any); ok && media == "application/json" && (a.op.ID == "sendMessage" || a.op.ID == "editMessage") {
		value = g.coherent(o)
	}
	switch media {
	case "application/json":
		if a.wild != valid {
			value = g.mutate(value)
		}
		data, err := json.Marshal(value)
		if err != nil {
			panic(err) // values are plain
		}
		a.body = data
	case "multipart/form-data":
		a.body, media = g.form(value.(map[string]any), a.wild)
	default:
		var b strings.Builder
		for range g.IntN(4) {
			line := g.oneOf(`{"role":"user","content":"Hello"}`, `{"role":"assistant","content":"Hi"}`, `{"type":"human","data":{"content":"yo"}}`,
				`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`, "")
			if a.wild != valid && g.chance(30) {
				line = g.oneOf(`{"role":"robot"}`, "{", `{"role":7}`, "null", `{"role":"tool","tool_call_id":"nope","content":""}`, strings.Repeat("[", 20000), `{"role":"user","content":"`+"\x00"+`"}`, "\xff")
			}
			b.WriteString(line + "\n")
		}
		a.body = []byte(b.String())
	}
	a.headers = append(a.headers, "Content-Type: "+media)
	if a.wild != valid && g.chance(30) {
		a.body = g.damage(a.body)
	}
}

// coherent takes out of a message what does not go together, most of the time.
func (g *generator) coherent(o map[string]any) map[string]any {
	if g.chance(15) {
		return o
	}
	drop := []string{"role", "tool_calls", "tool_call_id", "tool_name", "created_at"}
	if o["run"] == false {
		drop = []string{"model", "multitask", "user_id", "tool_call_id", "tool_calls", "parts"}
	}
	for _, name := range drop {
		delete(o, name)
	}
	if o["role"] == "tool" || g.chance(50) {
		delete(o, "role")
	}
	if o["source"] == "slack" {
		o["source"] = "api"
	}
	return o
}

func (g *generator) form(fields map[string]any, w wildness) ([]byte, string) {
	var b strings.Builder
	for _, name := range []string{"message", "session_id", "user_id", "file"} {
		value, ok := fields[name]
		if !ok {
			continue
		}
		text := fmt.Sprint(value)
		extra := ""
		switch name {
		case "message":
			text = `{"content":"with a file"}`
		case "session_id":
			text = g.me.ids.pick("session", g.IntN(pooled))
		case "file":
			text, extra = g.oneOf("plain text", "a,b\n1,2\n", "\x89PNG\r\n\x1a\n broken", "%PDF-1.4 x", "<html>", "", "\x00\x01\x02"), `; filename="`+g.oneOf("a.txt", "b.csv", "../../c", "d\x00e", "ü.png")+`"`
		}
		if w != valid && g.chance(20) {
			text = g.nasty()
		}
		fmt.Fprintf(&b, "--bound\r\nContent-Disposition: form-data; name=%q%s\r\n\r\n%s\r\n", name, extra, text)
	}
	b.WriteString("--bound--\r\n")
	return []byte(b.String()), g.oneOf("multipart/form-data; boundary=bound", "multipart/form-data; boundary=bound", "multipart/form-data; boundary=bound", "multipart/form-data", "multipart/form-data; boundary=other")
}

// value makes a value that the schema takes.
func (g *generator) value(schema map[string]any, name string, depth int) any {
	schema = g.doc.Resolve(schema)
	if v, ok := g.known(name); ok {
		return v
	}
	if v, ok := schema["const"]; ok {
		return v
	}
	if list, ok := schema["enum"].([]any); ok {
		return list[g.IntN(len(list))]
	}
	if list, ok := schema["anyOf"].([]any); ok {
		return g.value(list[g.IntN(len(list))].(map[string]any), name, depth+1)
	}
	switch schema["type"] {
	case "object":
		out := map[string]any{}
		properties, _ := schema["properties"].(map[string]any)
		names := make([]string, 0, len(properties))
		for name := range properties {
			names = append(names, name)
		}
		slices.Sort(names) // the numbers decide, not the map
		required, _ := schema["required"].([]any)
		for _, name := range names {
			if name == "content" || slices.Contains(required, any(name)) || g.chance(25) {
				out[name] = g.value(properties[name].(map[string]any), name, depth+1)
			}
		}
		if properties == nil && g.chance(50) {
			out["note"] = "free"
		}
		return out
	case "array":
		items, _ := schema["items"].(map[string]any)
		list := []any{}
		for range g.IntN(3) {
			if depth < 5 && schema["maxItems"] != json.Number("0") {
				list = append(list, g.value(items, "", depth+1))
			}
		}
		return list
	case "integer":
		return g.integer(schema)
	case "number":
		return g.Float64()*2 - 1
	case "boolean":
		return g.chance(50)
	default:
		switch schema["format"] {
		case "date-time":
			return g.oneOf("2026-01-02T03:04:05Z", "2025-06-01T12:00:00.5+02:00")
		case "uuid":
			return "01a1fd1b-c2ab-74fe-af4a-73c58ae3b243"
		}
		return g.oneOf("Hello there", "pump", "tool 17 * 23", "日本語のテキスト", "Grüße", "a", "two words", "e\u0301", "👩‍👩‍👧", "\u202eabc", "code: ERR_CONN_RESET")
	}
}

// known returns values of members that mean something.
func (g *generator) known(name string) (any, bool) {
	switch name {
	case "blob_id", "message_id", "session_id":
		whose := g.me
		if g.chance(10) {
			whose = g.other
		}
		return whose.ids.pick(strings.TrimSuffix(name, "_id"), g.IntN(pooled)), true
	case "timezone":
		return g.oneOf("", "Europe/Vienna", "UTC", "Mars/Base"), true
	case "agent":
		return g.oneOf("", "assistant"), true
	case "model":
		return g.oneOf("", "", "house"), true
	case "run":
		return g.chance(70), true
	case "cursor":
		return g.cursors.pick("cursor", g.IntN(pooled)), true
	case "from", "to":
		return g.oneOf("2026-01-01", "2026-12-01T00:00:00Z"), true
	}
	return nil, false
}

func (g *generator) integer(schema map[string]any) any {
	low, high := int64(0), int64(1000)
	if n, ok := schema["minimum"].(json.Number); ok {
		low, _ = n.Int64()
	}
	if n, ok := schema["maximum"].(json.Number); ok {
		high, _ = n.Int64()
	}
	switch g.IntN(6) {
	case 0:
		return low
	case 1:
		return high
	default:
		return low + g.Int64N(min(high-low, 40)+1)
	}
}

// nasty returns a text that nobody should send.
func (g *generator) nasty() string {
	return g.oneOf("", "\x00", "a\x00b", "\xff\xfe", "'", `" OR ""="`, "'; --", "%s%n", "${jndi:x}", "../../x", strings.Repeat("x", 600), strings.Repeat("語", 9000), "-1", "0", "201",
		"1e309", "99999999999999999999", "NaN", "true", "null", "{}", "[]", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-13-45", "10000-01-01T00:00:00Z", "*", "-", `"`, "a*", `"open`, "\u2028",
		base64.RawURLEncoding.EncodeToString([]byte(strings.Repeat("z", g.IntN(40)))), g.cursors.pick("cursor", g.IntN(pooled)))
}

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
