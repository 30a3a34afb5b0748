package standing

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// patterns are expressions of tags. Many small ones take less time than one with all of them.
type patterns []*regexp.Regexp

// match reports whether one of the patterns matches the tags.
func (p patterns) match(tags string) bool {
	return slices.ContainsFunc(p, func(r *regexp.Regexp) bool { return r.MatchString(tags) })
}

// compilePatterns returns the expressions of the patterns.
func compilePatterns(all []string) patterns {
	var out patterns
	for _, pattern := range all {
		out = append(out, regexp.MustCompile(theCompiler().compile(pattern)))
	}
	return out
}

// tagsOf returns the tags of the concepts.
func tagsOf(concepts string) string {
	var tags string
	for concept := range strings.FieldsSeq(concepts) {
		tags += theCompiler().sets[concept]
	}
	return tags
}

// compiler makes expressions of tags from patterns of concepts.
type compiler struct {
	sets  map[string]string // the tags of a concept or a set of them
	names map[string]string // expressions by name
}

//nolint:gochecknoglobals // immutable
var theCompiler = sync.OnceValue(func() compiler {
	c := compiler{sets: map[string]string{}, names: map[string]string{}}
	c.sets["x"], c.sets["comma"], c.sets["quote"], c.sets["num"] = string(tagOther), string(tagComma), string(tagQuote), string(tagNumber)
	for concept, tag := range theLexicon().tags {
		c.sets[concept] = string(tag)
	}
	for _, set := range conceptSets() {
		var tags string
		for concept := range strings.FieldsSeq(set[1]) {
			tags += c.sets[concept]
		}
		c.sets[set[0]] = tags
	}
	for _, n := range patternNames() {
		c.names[n[0]] = "(?:" + c.compile(n[1]) + ")"
	}
	return c
})

// compile returns the expression of a pattern.
func (c compiler) compile(pattern string) string {
	var out strings.Builder
	isClass := false
	for _, part := range partOfPattern().FindAllString(pattern, -1) {
		tags, isSet := c.sets[part]
		switch {
		case part == "[" || part == "[^" || part == "]":
			isClass = part != "]"
			out.WriteString(part)
		case isSet && isClass:
			out.WriteString(tags)
		case isSet:
			out.WriteString("[" + tags + "]")
		case c.names[part] != "":
			out.WriteString(c.names[part])
		case unicode.IsLetter(rune(part[0])):
			panic("standing: no concept " + part)
		default:
			out.WriteString(strings.TrimSpace(part))
		}
	}
	return out.String()
}

// partOfPattern matches a name, the bounds of a class, or any other character.
//
//nolint:gochecknoglobals // immutable
var partOfPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[a-z]+|\[\^?|\(\?:|.`) })
