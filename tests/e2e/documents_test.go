package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/documents"
	"bobbin/tests/provider"
)

// A PDF of 300 pages, a Word document and a workbook are uploaded and asked about; the
// model sees what stands on their last pages.
func TestFiles(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{Window: 400_000, Record: true})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 400_000, 2048, p), func(c *config.Config) { c.Limits.RunTime = time.Minute })
	id := apptest.NewSession(t, h.Client, ops.NewSession{})
	pages := make([]string, 300)
	for i := range pages {
		pages[i] = strings.Repeat(fmt.Sprintf("Pump %d reported a deviation of %d microns and was taken out of service.\n", i+1, i*7), 35)
	}
	pages[298], pages[150] = "The code of the safe is 4711.", ""
	paragraphs := make([]string, 500)
	for i := range paragraphs {
		paragraphs[i] = fmt.Sprintf("Paragraph %d of the contract.", i)
	}
	rows := make([][]any, 2000)
	for i := range rows {
		rows[i] = []any{fmt.Sprint("item ", i), i * 3}
	}
	workbook := documents.Excel("Stock", rows...)
	for _, c := range []struct {
		name  string
		data  []byte
		words []string
	}{
		{"report.pdf", documents.PDF(pages...), []string{"[1 of 300 pages have no text: they are scanned or drawn, and their content is missing here: 151]", "[page 299]\nThe code of the safe is 4711.", "[page 300]\nPump 300 reported"}},
		{"contract.docx", documents.Word(documents.Paragraphs(paragraphs...)), []string{"Paragraph 499 of the contract."}},
		{"stock.xlsx", workbook, []string{"[sheet \"Stock\"]", "item 1999\t5997"}},
	} {
		b := apptest.Must(h.UploadBlob(t.Context(), core.Upload{Name: c.name, Data: c.data}))(t)
		said := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "What does " + c.name + " say?", Parts: []core.Part{b.Part()}})
		prompts := p.Prompts()
		prompt := strings.Join(prompts[len(prompts)-1], "\n")
		for _, words := range c.words {
			if !strings.Contains(prompt, words) {
				t.Errorf("%s: the model did not see %q", c.name, words)
			}
		}
		if !b.Extracted || said.Question.TokenCount < b.Tokens {
			t.Errorf("%s: got %+v in a message of %d tokens", c.name, b, said.Question.TokenCount)
		}
	}
	if p.Rejected() != 0 {
		t.Errorf("%d prompts were refused as too long", p.Rejected())
	}
}
