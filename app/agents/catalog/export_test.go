package catalog

import "bobbin/app/core"

// Parse reads an agent from the text of a file.
func Parse(path, text string, known Known) (core.Agent, error) {
	return parse(path, []byte(text), known)
}
