package records

import (
	"math/rand/v2"
	"strings"
)

// Compose returns a message: its mark, and words. One in four wants a tool.
func Compose(mark string, r *rand.Rand) string {
	words := []string{
		"river", "stone", "lantern", "copper", "winter", "paper", "orchard", "signal", "harbor", "velvet", "number",
		"question", "window", "ladder", "summer", "bridge", "engine", "garden", "letter", "mountain", "Übergröße", "日本語", "naïve",
	}
	text := []string{mark}
	if r.IntN(4) == 0 {
		text = append(text, "tool")
	}
	length := 20 + r.IntN(400)
	if r.IntN(40) == 0 {
		length = 1500
	}
	for range length {
		text = append(text, words[r.IntN(len(words))])
	}
	return strings.Join(text, " ")
}
