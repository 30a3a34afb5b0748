package summarize

import (
	"embed"
	"fmt"
	"strings"
	"text/template"
)

//go:embed prompts/*.md
var promptFiles embed.FS

// prompts renders the embedded prompt files. Safe for concurrent use.
type prompts struct{ templates *template.Template }

// newPrompts parses the files; a file that cannot be parsed was broken by a
// programmer, so it panics.
func newPrompts() prompts {
	return prompts{template.Must(template.ParseFS(promptFiles, "prompts/*.md"))}
}

// systemData fills a preset's file. It depends on the policy alone, so that the
// system text is the same from call to call and providers can cache it.
type systemData struct {
	Tokens int  // what is asked for
	Ledger bool // lists are appended by code
}

// requestData fills request.md and shorten.md.
type requestData struct {
	Previous   string
	Transcript string
	Focus      string
	Language   string // empty = not sure
	Part       int
	Parts      int
	Tokens     int    // what is asked for
	Length     string // the same in words
	Have       int    // shorten.md: tokens of what is too long
	Rejected   string // why the last answer was not used
}

// lengthOf says a number of tokens in what a model can count better: words, or in
// languages without blanks characters.
func lengthOf(tokens int, language string) string {
	unit := "words"
	switch language {
	case "Chinese", "Japanese", "Thai":
		unit = "characters"
	}
	n := tokens * 7 / 10
	if n > 100 {
		n -= n % 10
	}
	return fmt.Sprintf("%d %s", max(n, 1), unit)
}

// system renders the file of the preset.
func (p prompts) system(preset string, data systemData) string {
	name := "summary_window.md"
	switch preset {
	case PresetBudget, PresetSliding, PresetRatio:
		name = "summary_" + preset + ".md"
	case PresetCompaction:
		name = "compaction.md"
	}
	return p.render(name, data)
}

func (p prompts) request(data requestData) string {
	data.Length = lengthOf(data.Tokens, data.Language)
	return p.render("request.md", data)
}

func (p prompts) shorten(data requestData) string {
	data.Length = lengthOf(data.Tokens, data.Language)
	return p.render("shorten.md", data)
}

// render fills a file. The files know no data but the structs above, which the
// tests of every file prove; so a failure is a programmer's.
func (p prompts) render(file string, data any) string {
	var b strings.Builder
	if err := p.templates.ExecuteTemplate(&b, file, data); err != nil {
		panic(fmt.Sprintf("summarize: prompt %s: %v", file, err))
	}
	return strings.TrimSpace(b.String())
}
