package llm

import (
	"strings"

	"bobbin/app/core"
)

// What Anthropic takes of an image: 5 MB in base64, 8,000 pixels on each side.
const (
	anthropicBytes = 5_000_000 / 4 * 3
	anthropicSide  = 8_000
)

// Takes reports whether the model can be sent the image: it sees images, and its
// provider takes this kind and size.
func (i Info) Takes(p core.Part) bool {
	switch {
	case !i.Images || p.Type != core.PartImage:
		return false
	case i.Provider == providerAnthropic || strings.Contains(i.Name, "claude"):
		return p.Size <= anthropicBytes && p.Width <= anthropicSide && p.Height <= anthropicSide
	case i.Provider == providerGemini:
		return p.MediaType != "image/gif"
	default:
		return true
	}
}
