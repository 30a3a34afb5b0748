package summarize

import (
	"embed"
	"fmt"
	"strings"
	"sync"
	"text/template"
)

//go:embed prompts/*.md
var promptFiles embed.FS

// templates are the prompt files.
//
//nolint:gochecknoglobals // immutable
var templates = sync.OnceValue(func() *template.Template { return template.Must(template.ParseFS(promptFiles, "prompts/*.md")) })

// systemData fills a preset's file. It depends on the policy alone, so that the
// system text is the same from call to call and providers can cache it.
type systemData struct {
	Tokens int  // to ask for
	Ledger bool // code appends the lists
}

// requestData fills request.md and shorten.md.
type requestData struct {
	Previous   string
	Transcript string
	Focus      string
	Speakers   bool   // messages begin with the names of users
	Language   string // empty = not sure
	Tokens     int    // to ask for
	Length     string // the same in words or characters
	Have       int    // shorten.md: tokens of the text that is too long
	Rejected   string // why the last answer was refused
}

// lengthOf returns a number of tokens in units that a model can count: words, or
// characters in languages without blanks.
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

func renderRequest(data requestData) string {
	data.Length = lengthOf(data.Tokens, data.Language)
	return renderFile("request.md", data)
}

// renderFile renders a file. It panics on an error: the files use only the structs above,
// and tests render all of them.
func renderFile(file string, data any) string {
	var b strings.Builder
	if err := templates().ExecuteTemplate(&b, file, data); err != nil {
		panic(fmt.Sprintf("summarize: prompt %s: %v", file, err))
	}
	return strings.TrimSpace(b.String())
}
