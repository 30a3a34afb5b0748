package openapi

import (
	"bytes"
	"cmp"
	_ "embed" // the page
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

//go:embed page.html
var pageSource string

//go:embed docs.css
var styleSource []byte

//go:embed docs.js
var scriptSource []byte

//go:embed docs.svg
var iconSource []byte

// page is the data of the page's template.
type page struct {
	Title, Version, Summary, Intro string
	Groups                         []Group
	Schemas                        []Field
}

// Group holds the operations of a tag.
type Group struct {
	Name, Anchor, Description string
	Operations                []Operation
}

// Operation is one operation as the page shows it.
type Operation struct {
	ID, Method, Path, Summary, Description string
	Access                                 string // required access, in words
	NoKey                                  bool
	Params                                 []Field
	Inputs                                 []Field // the parameters, and the members of a JSON body, whose place is body
	Bodies, Answers                        []Content
	Curl                                   string
}

// Content is a request body or an answer.
type Content struct {
	Status, Description, Media string
	Ref, Type                  string // the name of the schema, or its type in words
	Fields                     []Field
	Example                    string
}

// renderPage returns the page of the operations as HTML.
func renderPage(doc object, groups []Group) []byte {
	parsed := must(template.New("page").Funcs(template.FuncMap{"prose": proseHTML, "lower": strings.ToLower}).Parse(pageSource))
	r := reader{doc}
	info := doc.in("info")
	p := page{Title: stringOf(info, "title"), Version: stringOf(info, "version"), Summary: stringOf(info, "summary"), Intro: stringOf(info, "description")}
	p.Groups = groups
	for _, m := range doc.in("components").in("schemas") {
		f := r.readField(m.name, m.value.(object))
		f.Fields = r.readFields("", m.value.(object))
		p.Schemas = append(p.Schemas, f)
	}
	var out bytes.Buffer
	must(0, parsed.Execute(&out, p))
	return out.Bytes()
}

// operationGroups returns the operations by their first tag, in the order of the tags.
func (r reader) operationGroups() []Group {
	var groups []Group
	index := map[string]int{}
	for _, t := range listOf(r.doc, "tags") {
		tag := t.(object)
		name := stringOf(tag, "name")
		index[name] = len(groups)
		groups = append(groups, Group{Name: name, Anchor: "tag-" + strings.ReplaceAll(name, " ", "-"), Description: stringOf(tag, "description")})
	}
	for _, path := range r.doc.in("paths") {
		for _, m := range path.value.(object) {
			op := r.readOperation(path.name, m.name, m.value.(object))
			tag := fmt.Sprint(listOf(m.value.(object), "tags")[0])
			groups[index[tag]].Operations = append(groups[index[tag]].Operations, op)
		}
	}
	return groups
}

// accessText describes the required access: none, a key with a scope, or also the token of
// an end user.
func accessText(security []any) (words string, public bool) {
	users := false
	for i, requirement := range security {
		schemes, _ := requirement.(object)
		if i == 0 && len(schemes) == 0 {
			return "no key", true
		}
		for _, scheme := range schemes {
			users = users || scheme.name == "jwt"
			if scopes, _ := scheme.value.([]any); len(scopes) > 0 {
				words = fmt.Sprintf("scope %v", scopes[0])
			}
		}
	}
	if words != "" && !users {
		words += ", not for end users"
	}
	return words, false
}

func (r reader) readOperation(path, method string, raw object) Operation {
	op := Operation{ID: stringOf(raw, "operationId"), Method: strings.ToUpper(method), Path: path, Summary: stringOf(raw, "summary"), Description: stringOf(raw, "description")}
	op.Access, op.NoKey = accessText(listOf(raw, "security"))
	for _, param := range listOf(raw, "parameters") {
		p := r.resolveRef(param)
		f := r.readField(stringOf(p, "name"), p.in("schema"))
		f.Place, f.Description, f.example = stringOf(p, "in"), stringOf(p, "description"), formatExample(p.get("example"))
		f.Required, _ = p.get("required").(bool)
		op.Params = append(op.Params, f)
	}
	if body := raw.in("requestBody"); body != nil {
		op.Bodies = r.readContents("", body)
	}
	op.Inputs = slices.Clone(op.Params)
	for _, f := range r.readFields("", r.resolveRef(raw.in("requestBody").in("content").in("application/json").get("schema"))) {
		if f.Place = "body"; !strings.ContainsAny(f.Name, ".[") { // not those of nested objects
			op.Inputs = append(op.Inputs, f)
		}
	}
	for _, m := range raw.in("responses") {
		op.Answers = append(op.Answers, r.readContents(m.name, r.resolveRef(m.value))...)
	}
	slices.SortStableFunc(op.Answers, func(a, b Content) int { return strings.Compare(a.Status, b.Status) })
	op.Curl = curlCommand(op)
	return op
}

// readContents returns the contents of a body or an answer, which are one without a media type if it has none.
func (r reader) readContents(status string, raw object) []Content {
	media := raw.in("content")
	if media == nil {
		media = object{{"", object{}}}
	}
	var all []Content
	for _, m := range media {
		value := m.value.(object)
		schema := value.in("schema")
		c := Content{
			Status: status, Description: stringOf(raw, "description"), Media: m.name, Ref: refName(schema), Type: r.typeText(schema), Example: formatExample(value.get("example")),
		}
		if c.Ref == "" {
			c.Fields = r.readFields("", schema)
		}
		all = append(all, c)
	}
	return all
}

// curlCommand returns a command that calls the operation.
func curlCommand(op Operation) string {
	path, query := op.Path, ""
	for _, p := range op.Params {
		switch {
		case p.example == "":
		case p.Place == "path":
			path = strings.Replace(path, "{"+p.Name+"}", p.example, 1)
		case p.Place == "query":
			query += "&" + p.Name + "=" + url.PathEscape(p.example)
		}
	}
	if query != "" {
		path += "?" + query[1:]
	}
	var b strings.Builder
	b.WriteString("curl -s")
	switch op.Method {
	case "GET":
	case "HEAD":
		b.WriteString(" -I")
	default:
		b.WriteString(" -X " + op.Method)
	}
	b.WriteString(" 'http://127.0.0.1:8080" + path + "'")
	if !op.NoKey {
		b.WriteString(" \\\n  -H \"Authorization: Bearer $BOBBIN_KEY\"")
	}
	if len(op.Bodies) == 0 {
		return b.String()
	}
	body := op.Bodies[0]
	if body.Media == "multipart/form-data" {
		return b.String() + " \\\n  -F file=@picture.png"
	}
	return b.String() + " \\\n  -H 'Content-Type: " + body.Media + "' \\\n  -d '" + strings.ReplaceAll(cmp.Or(body.Example, "{}"), "'", `'\''`) + "'"
}

// proseHTML converts a text with `code`, **strong** and blank lines to HTML.
func proseHTML(s string) template.HTML {
	s = template.HTMLEscapeString(strings.TrimSpace(s))
	s = regexp.MustCompile("`([^`]+)`").ReplaceAllString(s, "<code>$1</code>")
	s = regexp.MustCompile(`\*\*([^*]+)\*\*`).ReplaceAllString(s, "<strong>$1</strong>")
	return template.HTML("<p>" + strings.ReplaceAll(s, "\n\n", "</p><p>") + "</p>") //nolint:gosec // it was escaped above
}

// reader reads the document.
type reader struct{ doc object }

// Field is a parameter, a member of a schema, or a named schema, which has Fields.
type Field struct {
	Name, Place, Type, Ref, Limits, Description string
	example                                     string // of a parameter
	Required, IsText                            bool
	Fields                                      []Field
}

func stringOf(o object, name string) string {
	s, _ := o.get(name).(string)
	return s
}

func listOf(o object, name string) []any {
	l, _ := o.get(name).([]any)
	return slices.Clone(l)
}

// resolveRef returns the object that a value is or refers to, nil if it is not an object.
func (r reader) resolveRef(value any) object {
	o, _ := value.(object)
	ref := stringOf(o, "$ref")
	if ref == "" {
		return o
	}
	target := r.doc
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		target = target.in(strings.ReplaceAll(name, "~1", "/"))
	}
	return r.resolveRef(target)
}

// refName returns the name of the schema that a schema refers to, "" if it is not a reference.
func refName(schema object) string {
	name, ok := strings.CutPrefix(stringOf(schema, "$ref"), "#/components/schemas/")
	if !ok {
		return ""
	}
	return name
}

// readFields returns the members of a schema, including those of nested objects.
func (r reader) readFields(prefix string, schema object) []Field {
	var out []Field
	for _, piece := range listOf(schema, "allOf") {
		out = append(out, r.readFields(prefix, r.resolveRef(piece))...)
	}
	required := listOf(schema, "required")
	for _, m := range schema.in("properties") {
		inner := m.value.(object)
		f := r.readField(prefix+m.name, inner)
		f.Required = slices.Contains(required, any(m.name))
		out = append(out, f)
		below := prefix + m.name + "."
		if items, ok := inner.get("items").(object); ok {
			inner, below = items, prefix+m.name+"[]."
		}
		if refName(inner) == "" {
			out = append(out, r.readFields(below, inner)...)
		}
	}
	return out
}

func (r reader) readField(name string, schema object) Field {
	f := Field{Name: name, Type: r.typeText(schema), Ref: refName(schema), Description: stringOf(schema, "description"), Limits: limitsText(r.resolveRef(schema))}
	f.IsText = stringOf(r.resolveRef(schema), "type") == "string"
	if items, ok := schema.get("items").(object); ok && f.Ref == "" {
		f.Ref = refName(items)
	}
	if f.Description == "" && f.Ref != "" {
		f.Description = stringOf(r.resolveRef(schema), "description")
	}
	return f
}

// typeText describes the type of a schema.
func (r reader) typeText(schema object) string {
	if name := refName(schema); name != "" {
		return name
	}
	var choices []string
	for _, piece := range append(listOf(schema, "anyOf"), listOf(schema, "oneOf")...) {
		choices = append(choices, r.typeText(piece.(object)))
	}
	if len(choices) > 0 {
		return strings.Join(choices, " or ")
	}
	switch kind := schema.get("type").(type) {
	case string:
		if items, ok := schema.get("items").(object); ok {
			return "list of " + r.typeText(items)
		}
		if format := stringOf(schema, "format"); format != "" {
			return kind + " (" + format + ")"
		}
		return kind
	case []any:
		return strings.ReplaceAll(strings.Trim(fmt.Sprint(kind), "[]"), " ", " or ")
	default:
		return "any"
	}
}

// limitsText describes the limits of a schema.
func limitsText(schema object) string {
	formats := map[string]string{
		"const": "always %v", "enum": "one of %v", "default": "default %v", "minimum": "from %v", "maximum": "to %v", "maxLength": "at most %v bytes", "maxItems": "at most %v entries",
	}
	var words []string
	for _, m := range schema {
		value := fmt.Sprint(m.value)
		if m.name == "enum" {
			value = strings.Trim(value, "[]")
		}
		if format := formats[m.name]; format != "" {
			words = append(words, fmt.Sprintf(format, value))
		}
	}
	return strings.Join(words, ", ")
}

// formatExample returns an example as text.
func formatExample(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		return string(must(json.MarshalIndent(v, "", "  ")))
	}
}
