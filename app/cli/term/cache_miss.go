package term

import (
	"encoding/json"
	"fmt"

	"bobbin/app/core"
)

// maxProviderWords bounds what a provider says, in characters.
const maxProviderWords = 200

// DescribeMisses says for each cache miss in the report of a run what differed first, and why.
func DescribeMisses(report json.RawMessage) []string {
	var r core.ContextReport
	if len(report) == 0 || json.Unmarshal(report, &r) != nil {
		return nil
	}
	var lines []string
	for _, m := range r.CacheMisses {
		line := fmt.Sprintf("model call %d: %s (%s)", m.Call, describePart(m), Clean(string(m.Reason)))
		if m.Provider != "" {
			line += ", the provider says " + Line(m.Provider, maxProviderWords)
		}
		lines = append(lines, line)
	}
	return lines
}

// describePart says which part of the prompt differed.
func describePart(m core.CacheMiss) string {
	switch m.Part {
	case core.PromptSame:
		if m.Reason == core.CacheReported {
			return "the prompt is the same so far, as far as Bobbin compares it"
		}
		return "the prompt is the same so far, the provider no longer had all of it"
	case core.PromptOfMessage:
		text := fmt.Sprintf("message %d of the prompt differs", m.Index)
		if m.Within > 0 {
			text = fmt.Sprintf("one of the messages %d to %d of the prompt differs", m.Index, m.Index+m.Within-1)
		}
		if m.Seq > 0 {
			text += fmt.Sprintf(", #%d", m.Seq)
		}
		return text
	default:
		return fmt.Sprintf("the part %q differs", m.Part)
	}
}
