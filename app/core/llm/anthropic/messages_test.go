package anthropic_test

import (
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/anthropic"
)

// Issue 3, item 6: images as base64 blocks before the text; a message of images alone
// has no text at all.
func TestImages(t *testing.T) {
	t.Parallel()
	image := func(data string) llm.Image {
		return llm.Image{Part: core.Part{Type: core.PartImage, MediaType: "image/png"}, Data: []byte(data)}
	}
	p := sent(t, anthropic.Options{Model: "claude-sonnet-4-5", APIKey: "k"}, llm.Request{Messages: []llm.Message{
		{Role: core.RoleUser, Content: "look", Images: []llm.Image{image("one"), image("two")}},
		{Role: core.RoleAssistant, Content: "I see"},
		{Role: core.RoleUser, Images: []llm.Image{image("three")}},
	}})
	body := p.raw
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
