package llm_test

import (
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// A model gets a PDF as a file as files.native_pdf says, if it is small and its text is
// there to fall back on.
func TestTakesDocuments(t *testing.T) {
	t.Parallel()
	scan := core.Part{Type: core.PartFile, MediaType: "application/pdf", Size: 1 << 20, Pages: 20, Blank: 1, Extracted: true}
	with := func(change func(*core.Part)) core.Part {
		p := scan
		change(&p)
		return p
	}
	text := with(func(p *core.Part) { p.Blank = 0 })
	for name, c := range map[string]struct {
		documents llm.Documents
		part      core.Part
		want      bool
	}{
		"scanned: a scan":     {llm.DocumentsScanned, scan, true},
		"scanned: text alone": {llm.DocumentsScanned, text, false},
		"always: text alone":  {llm.DocumentsAlways, text, true},
		"never":               {llm.DocumentsNever, scan, false},
		"nothing said":        {"", scan, false},
		"21 pages":            {llm.DocumentsAlways, with(func(p *core.Part) { p.Pages = 21 }), false},
		"unknown pages":       {llm.DocumentsAlways, with(func(p *core.Part) { p.Pages = 0 }), false},
		"too large":           {llm.DocumentsAlways, with(func(p *core.Part) { p.Size = 14<<20 + 1 }), false},
		"not read":            {llm.DocumentsAlways, with(func(p *core.Part) { p.Extracted = false }), false},
		"no PDF":              {llm.DocumentsAlways, with(func(p *core.Part) { p.MediaType = "text/html" }), false},
		"an image":            {llm.DocumentsAlways, core.Part{Type: core.PartImage, MediaType: "image/png"}, false},
	} {
		if got := (llm.Info{Documents: c.documents}).Takes(c.part); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// PDFs go as files to models that see images at the own address of OpenAI or Anthropic; to
// others where the operator says so.
func TestWhichModelsGetDocuments(t *testing.T) {
	t.Parallel()
	no := false
	entries := []llm.Entry{
		{Name: "own server", Provider: "openai", Model: "gpt-4o", BaseURL: "http://127.0.0.1:8000/v1"},
		{Name: "server that does", Provider: "openai", Model: "x", BaseURL: "http://127.0.0.1:8000/v1", Documents: llm.DocumentsAlways},
		{Name: "told not to", Provider: "openai", Model: "gpt-4o", Documents: llm.DocumentsNever},
		{Name: "blind", Provider: "openai", Model: "gpt-4o", Images: &no},
	}
	defaults := llm.Defaults{
		Images:    func(string) bool { return true },
		Documents: func(string) llm.Documents { return llm.DocumentsScanned },
	}
	keys := []string{"OPENAI_API_KEY=a", "ANTHROPIC_API_KEY=b", "GEMINI_API_KEY=c", "OPENROUTER_API_KEY=d"}
	for name, want := range map[string]llm.Documents{
		"gpt-4o": llm.DocumentsScanned, "claude-sonnet-4-5": llm.DocumentsScanned, "gemini-2.5-flash": "", "openrouter/openai/gpt-4o": "",
		"ollama/llava": "", "own server": "", "server that does": llm.DocumentsAlways, "told not to": llm.DocumentsNever, "blind": "",
	} {
		defaults.Env = variables(keys...)
		if m, err := newRegistry(t, entries, defaults).Get(name); err != nil || m.Info().Documents != want {
			t.Errorf("%s: got %v and %v, want the documents %q", name, m, err, want)
		}
	}
	defaults.Env = variables(append(keys, "OPENAI_BASE_URL=http://127.0.0.1:8000/v1")...)
	if m, err := newRegistry(t, entries, defaults).Get("gpt-4o"); err != nil || m.Info().Documents != "" {
		t.Errorf("another address in the environment: got %v and %v, want no documents", m, err)
	}
}
