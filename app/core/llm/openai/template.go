package openai

import (
	"bytes"
	"encoding/json"
	"reflect"
	"unicode/utf8"

	"bobbin/app/core/llm/providerhttp"
)

// template is what the chunks of one answer have around their text. Servers send a chunk for each
// word, and all but the word is the same: it need not be parsed again. The zero value fits nothing.
type template struct{ before, after []byte }

// newTemplate returns the template of a chunk that brings text and nothing else; the zero one if it
// finds none. The parser itself proves it, with another text in the same place.
func newTemplate(data []byte) template {
	const field, probe = `"content":`, `"probe"`
	head, rest, found := bytes.Cut(data, []byte(field+`"`))
	_, after, whole := bytes.Cut(rest, []byte(`"`))
	if !found || !whole {
		return template{}
	}
	t := template{data[:len(head)+len(field)], after}
	var c chunk
	err := providerhttp.Decode([]byte(string(t.before)+probe+string(after)), &c)
	text := []choice{{Delta: &piece{Content: content{text: "probe"}}}}
	if err != nil || c.Object == "error" || !reflect.DeepEqual(c, chunk{Object: c.Object, Model: c.Model, Choices: text}) {
		return template{}
	}
	return t
}

// text returns the text of a chunk that differs from the template in nothing else, byte for byte what
// the parser reads; empty if it differs.
func (t template) text(data []byte) (text string) {
	literal, begins := bytes.CutPrefix(data, t.before)
	literal, ends := bytes.CutSuffix(literal, t.after)
	if len(t.before) == 0 || !begins || !ends || len(literal) == 0 || literal[0] != '"' || readString(literal, &text) != nil {
		return ""
	}
	return text
}

// readString is json.Unmarshal of a string: one without escapes, as most words of an answer are, is its own text.
func readString(literal []byte, text *string) error {
	inner, isString := bytes.CutPrefix(literal, []byte(`"`))
	inner, ends := bytes.CutSuffix(inner, []byte(`"`))
	if isEscaped := func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == utf8.RuneError }; isString && ends && !bytes.ContainsFunc(inner, isEscaped) {
		*text = string(inner)
		return nil
	}
	return json.Unmarshal(literal, text)
}
