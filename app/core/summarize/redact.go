package summarize

import (
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/redact"
)

// redacted returns the request without the secrets in its texts: what follows sees
// none, and so can store none. The caller's messages are not changed: the log keeps
// every word (W10).
func redacted(req Request) Request {
	req.Previous, req.Focus = redact.Text(req.Previous), redact.Text(req.Focus)
	req.Messages = slices.Clone(req.Messages)
	for i, m := range req.Messages {
		m.Content = redact.Text(m.Content)
		m.ToolCalls = slices.Clone(m.ToolCalls)
		for j, c := range m.ToolCalls {
			m.ToolCalls[j].Arguments = redact.Text(c.Arguments)
		}
		m.Parts = slices.Clone(m.Parts)
		for j, p := range m.Parts {
			m.Parts[j].Text, m.Parts[j].Name = redact.Text(p.Text), redact.Text(p.Name)
		}
		req.Messages[i] = m
	}
	return req
}

// clean is text that every database takes and that holds no secret.
func clean(text string) string { return redact.Text(core.CleanText(text)) }
