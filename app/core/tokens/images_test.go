package tokens_test

import (
	"testing"

	"bobbin/app/core/tokens"
)

// OpenAI's models read PDFs from gpt-4o on; those of Anthropic that see images do.
func TestReadsPDF(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"gpt-4o-mini": true, "gpt-5.1": true, "claude-sonnet-4-5": true, "gpt-4-turbo-2024-04-09": false, "gpt-4-vision-preview": false,
		"o3-mini": false, "claude-2.1": false, "unheard-of": false,
	} {
		if got := tokens.ReadsPDF(name); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}
