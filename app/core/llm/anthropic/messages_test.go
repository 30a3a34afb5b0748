package anthropic_test

import (
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/anthropic"
)

// Images as base64 blocks before the text; a message of images alone
// has no text at all.
func TestImages(t *testing.T) {
	t.Parallel()
	image := func(data string) llm.Media {
		return llm.Media{Part: core.Part{Type: core.PartImage, MediaType: "image/png"}, Data: []byte(data)}
	}
	p := sent(t, anthropic.Options{Model: "claude-sonnet-4-5", APIKey: "k"}, llm.Request{Messages: []llm.Message{
		{Role: core.RoleUser, Content: "look", Media: []llm.Media{image("one"), image("two")}},
		{Role: core.RoleAssistant, Content: "I see"},
		{Role: core.RoleUser, Media: []llm.Media{image("three")}},
	}})
	body := p.raw()
	for _, want := range []string{
		`[{"source":{"data":"b25l","media_type":"image/png","type":"base64"},"type":"image"},{"source":{"data":"dHdv","media_type":"image/png","type":"base64"},"type":"image"},{"text":"look","type":"text"}]`,
		`{"source":{"data":"dGhyZWU=","media_type":"image/png","type":"base64"},`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("got %s, want %s in it", body, want)
		}
	}
	if strings.Contains(body, llm.EmptyText) {
		t.Errorf("got %s, want no text with images alone", body)
	}
}

// A PDF is a document block with its name, before the text; one alone has no text.
func TestDocuments(t *testing.T) {
	t.Parallel()
	pdf := llm.Media{Part: core.Part{Type: core.PartFile, MediaType: "application/pdf", Name: "plan.pdf"}, Data: []byte("%PDF-1.7 scan")}
	p := sent(t, anthropic.Options{Model: "claude-sonnet-4-5", APIKey: "k"}, llm.Request{Messages: []llm.Message{
		{Role: core.RoleUser, Content: "look", Media: []llm.Media{pdf, {Part: core.Part{Type: core.PartImage, MediaType: "image/png"}, Data: []byte("one")}}},
		{Role: core.RoleAssistant, Content: "I see"},
		{Role: core.RoleUser, Media: []llm.Media{pdf}},
	}})
	const document = `{"source":{"data":"JVBERi0xLjcgc2Nhbg==","media_type":"application/pdf","type":"base64"},"title":"plan.pdf",`
	for _, want := range []string{
		`[` + document + `"type":"document"},{"source":{"data":"b25l","media_type":"image/png","type":"base64"},"type":"image"},{"text":"look","type":"text"}]`,
		`[` + document + `"cache_control":{"type":"ephemeral"},"type":"document"}]`,
	} {
		if !strings.Contains(p.raw(), want) {
			t.Errorf("got %s, want %s in it", p.raw(), want)
		}
	}
}

// A system message among the others goes to models that bind thoughts, and to no others.
func TestSystemMessages(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]bool{"claude-opus-5-5": true, "claude-opus-4-6": false, "claude-latest": false} {
		req := ask("hi")
		req.Messages = append(req.Messages, llm.Message{Role: core.RoleSystem, Content: "Be brief."})
		got := sent(t, anthropic.Options{Model: model}, req).raw()
		if strings.Contains(got, `"text":"Be brief."`) != want || strings.Contains(got, `"role":"system"`) != want {
			t.Errorf("%s: got %s, want the message sent: %v", model, got, want)
		}
	}
}
