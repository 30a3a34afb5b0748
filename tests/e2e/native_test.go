package e2e_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/documents"
	"bobbin/tests/provider"
)

// readsPDF adds a model of that name and dialect that gets PDFs as files.
func readsPDF(name, dialect, url string) apptest.Setting {
	return func(c *config.Config) {
		yes := true
		c.Models = append(c.Models, config.Model{
			Name: name, Provider: dialect, BaseURL: url, ContextWindow: 64_000, MaxOutputTokens: 2048, Documents: &yes,
		})
		c.DefaultLLM = c.Models[0].Name
	}
}

// filesOf returns the files of the last request for an answer, and its first question.
func filesOf(p *provider.Server) (files []provider.File, question string) {
	for _, r := range slices.Backward(p.Received()) {
		if r.Answered {
			for _, m := range r.Messages {
				files = append(files, m.Files...)
			}
			return files, r.Messages[0].Text
		}
	}
	return nil, ""
}

// A scanned PDF goes to a model that reads PDFs byte for byte, in both dialects and in
// later prompts, too; as text to a model that does not, in the same session. What it costs
// is planned.
func TestScannedPDF(t *testing.T) {
	t.Parallel()
	for dialect, prefix := range map[string]string{"openai": "data:application/pdf;base64,", "anthropic": ""} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
				p := apptest.NewProvider(t, provider.Options{Window: 64_000, Record: true})
				h := apptest.New(t, url, readsPDF("reads", dialect, p.URL), apptest.WithModel("text", 64_000, 2048, p))
				id := apptest.NewSession(t, h.Client, ops.NewSession{})
				scan := documents.PDF("Pump seven leaks.", "", "")
				part := upload(t, h.Client, "paper.pdf", scan)
				asked := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "look", Parts: []core.Part{part}}).Question
				want := []provider.File{{Name: "paper.pdf", Data: prefix + base64.StdEncoding.EncodeToString(scan)}}
				if files, text := filesOf(p); !slices.Equal(files, want) || strings.Contains(text, "Pump seven") {
					t.Errorf("got the files %.100v and %q, want the PDF alone", files, text)
				}
				r := contextOf(t, h.Client, id)
				if pages := 3 * 1600; asked.TokenCount > 300 || r.Used < pages || r.Used > pages+3000 {
					t.Errorf("the message has %d tokens, the prompt %d, want the pages in the prompt alone", asked.TokenCount, r.Used)
				}
				view, err := client.Call(t.Context(), h, ops.GetPrompt, ops.InSession{SessionID: id})
				if err != nil || len(view.Messages[0].Media) != 1 || view.Messages[0].Media[0].BlobID != part.BlobID || view.Messages[0].Media[0].Blank != 2 {
					t.Errorf("got the prompt view %+v and %v, want the PDF in it", view.Messages[0], err)
				}
				for model, native := range map[string]bool{"text": false, "reads": true} {
					apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "and you?", Model: model})
					if files, text := filesOf(p); native != slices.Equal(files, want) || native == strings.Contains(text, "2 of 3 pages have no text") {
						t.Errorf("%s: got %d files and %q", model, len(files), text)
					}
				}
			})
		})
	}
}
