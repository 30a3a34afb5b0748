package eval

import (
	"embed"
	"fmt"
	"strings"

	"bobbin/app/core"
)

//go:embed data
var data embed.FS

// Sample is a conversation to try an evaluation with. Each contains facts to look for, and is
// long enough to show an effect in the window that it names.
type Sample struct {
	Name   string `json:"name"`
	About  string `json:"about"`
	Window int    `json:"window"` // in which it is worth looking at, in tokens
}

// List returns the samples.
func List() []Sample {
	return []Sample{
		{"chat", "a bicycle workshop moves house: a long talk about many things", 8_192},
		{"coding", "an agent repairs a Go service with the tools of an editor", 32_768},
		{"cjk", "a tea house in Hangzhou: Chinese, with Japanese and Korean between", 8_192},
		{"incident", "a night on call: few questions, and tools that answer with whole log files", 32_768},
	}
}

// Get returns a sample with its messages, as JSON lines. ErrNotFound names those
// that there are.
func Get(name string) (Sample, []byte, error) {
	var names []string
	for _, s := range List() {
		names = append(names, s.Name)
		if s.Name != name {
			continue
		}
		raw, err := data.ReadFile("data/" + name + ".jsonl")
		if err != nil {
			return s, nil, fmt.Errorf("sample %s: %w", name, err)
		}
		return s, raw, nil
	}
	return Sample{}, nil, core.Errorf(core.ErrNotFound, "there is no sample %q; there are %s", core.Clip(name, 40), strings.Join(names, ", "))
}
