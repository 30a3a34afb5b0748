package openapi

import (
	"bytes"
	_ "embed" // the page
	"fmt"
	"html/template"
	"regexp"
	"strings"
)

//go:embed page.html
var pageSource string

//go:embed docs.css
var styleSource []byte

//go:embed docs.js
var scriptSource []byte

// page is what the page shows.
type page struct {
	Title, Version, Summary, Intro string
	Groups                         []group
	Schemas                        []shape
}

// group is the operations of a tag.
type group struct {
	Name, Anchor, Description string
	Operations                []operation
}

// operation is one operation as people read it.
type operation struct {
	ID, Method, Path, Summary, Description string
	Access                                 string // who may ask, in words
	NoKey                                  bool
	Params                                 []field
	Bodies, Answers                        []content
	Curl                                   string
}

// content is a body that is sent, or an answer.
type content struct {
	Status, Description, Media string
	Ref, Type                  string // of a schema with a name that, else in words
	Fields                     []field
	Example                    string
}

// render makes the page.
func render(doc object) ([]byte, error) {
	parsed, err := template.New("page").Funcs(template.FuncMap{"prose": prose, "lower": strings.ToLower}).Parse(pageSource)
	if err != nil {
		return nil, err
	}
	r := reader{doc}
	info := object(nil)
	info, _ = doc.get("info").(object)
	p := page{Title: text(info, "title"), Version: text(info, "version"), Summary: text(info, "summary"), Intro: text(info, "description")}
	p.Groups = r.groups()
	schemas, _ := r.at("#/components/schemas").(object)
	for _, m := range schemas {
		p.Schemas = append(p.Schemas, r.shape(m.name, m.value))
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, p); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// groups returns the operations by their first tag, in the order of the tags.
func (r reader) groups() []group {
	var groups []group
	place := map[string]int{}
	for _, t := range list(r.doc, "tags") {
		tag := t.(object)
		name := text(tag, "name")
		place[name] = len(groups)
		groups = append(groups, group{Name: name, Anchor: "tag-" + strings.ReplaceAll(name, " ", "-"), Description: text(tag, "description")})
	}
	paths, _ := r.doc.get("paths").(object)
	for _, path := range paths {
		item := path.value.(object)
		for _, m := range item {
			if m.name == "parameters" {
				continue
			}
			op := r.operation(path.name, m.name, item, m.value.(object))
			tag := fmt.Sprint(list(m.value.(object), "tags")[0])
			groups[place[tag]].Operations = append(groups[place[tag]].Operations, op)
		}
	}
	return groups
}

// access says who may ask, by the ways that there are: everybody, a key with a scope, or
// also the token of an end user.
func access(ways []any) (words string, everybody bool) {
	users := false
	for i, way := range ways {
		schemes, _ := way.(object)
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

func (r reader) operation(path, method string, item, raw object) operation {
	op := operation{ID: text(raw, "operationId"), Method: strings.ToUpper(method), Path: path, Summary: text(raw, "summary"), Description: text(raw, "description")}
	op.Access, op.NoKey = access(list(raw, "security"))
	var params []object
	for _, p := range append(list(item, "parameters"), list(raw, "parameters")...) {
		params = append(params, r.resolve(p))
	}
	for _, p := range params {
		schema, _ := p.get("schema").(object)
		f := r.field(text(p, "name"), schema)
		f.Place, f.Description = text(p, "in"), text(p, "description")
		f.Required, _ = p.get("required").(bool)
		op.Params = append(op.Params, f)
	}
	body := r.resolve(raw.get("requestBody"))
	media, _ := body.get("content").(object)
	for _, m := range media {
		op.Bodies = append(op.Bodies, r.content(m))
	}
	answers, _ := raw.get("responses").(object)
	for _, m := range answers {
		op.Answers = append(op.Answers, r.answer(m)...)
	}
	sortAnswers(op.Answers)
	op.Curl = curl(op, params)
	return op
}

func (r reader) answer(m member) []content {
	raw := r.resolve(m.value)
	media, _ := raw.get("content").(object)
	if len(media) == 0 {
		return []content{{Status: m.name, Description: text(raw, "description")}}
	}
	var all []content
	for _, kind := range media {
		c := r.content(kind)
		c.Status, c.Description = m.name, text(raw, "description")
		all = append(all, c)
	}
	return all
}

func (r reader) content(m member) content {
	raw := m.value.(object)
	schema, _ := raw.get("schema").(object)
	c := content{Media: m.name, Ref: refName(schema), Type: r.words(schema)}
	if c.Ref == "" {
		c.Fields = r.fields("", schema)
	}
	example := raw.get("example")
	if example == nil && strings.HasSuffix(m.name, "json") {
		example = r.example(schema, 0)
	}
	c.Example = pretty(example)
	return c
}

// curl returns a command that asks for the operation.
func curl(op operation, params []object) string {
	path, query := op.Path, ""
	for _, p := range params {
		value := fmt.Sprint(p.get("example"))
		switch {
		case text(p, "in") == "path" && p.get("example") != nil:
			path = strings.Replace(path, "{"+text(p, "name")+"}", value, 1)
		case text(p, "in") == "query" && p.get("example") != nil:
			query += "&" + text(p, "name") + "=" + strings.ReplaceAll(value, " ", "%20")
		}
	}
	if query != "" {
		path += "?" + query[1:]
	}
	var b strings.Builder
	b.WriteString("curl -s")
	if op.Method != "GET" && op.Method != "HEAD" {
		b.WriteString(" -X " + op.Method)
	}
	if op.Method == "HEAD" {
		b.WriteString(" -I")
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
	return b.String() + " \\\n  -H 'Content-Type: " + body.Media + "' \\\n  -d '" + strings.ReplaceAll(body.Example, "'", `'\''`) + "'"
}

// prose makes HTML of a text with `code`, **strong** and blank lines.
func prose(s string) template.HTML {
	s = template.HTMLEscapeString(strings.TrimSpace(s))
	s = regexp.MustCompile("`([^`]+)`").ReplaceAllString(s, "<code>$1</code>")
	s = regexp.MustCompile(`\*\*([^*]+)\*\*`).ReplaceAllString(s, "<strong>$1</strong>")
	return template.HTML("<p>" + strings.ReplaceAll(s, "\n\n", "</p><p>") + "</p>") //nolint:gosec // it was escaped above
}
