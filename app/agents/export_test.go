package agents

import "bobbin/app/core"

// ParseFile reads an agent from the text of a file.
func ParseFile(path, text string, known KnownParts) (core.Agent, error) {
	return parseAgent(path, []byte(text), known)
}
