package summarize

import (
	"context"
	"fmt"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/prompttext"
	"bobbin/app/core/redact"
)

// MaxMaterial bounds the messages of one summary, in bytes: more than one call can show a
// model with a window of 128,000 tokens.
const MaxMaterial = 8 << 20

const (
	loadBytes = 4 << 20 // of texts that one query loads
	// edgeBytes is how far beyond a cut the search for secrets reads, so that it finds a
	// secret that the cut would split. Secrets are rarely longer.
	edgeBytes = 8 << 10
	// minSizeForTail is the size from which a cut text keeps its end, too.
	minSizeForTail = 128
)

// prepareMaterial returns the request with the texts of its messages, without the secrets
// in them: no later step sees a secret, so none can store one. It cuts texts of more than
// MaxMaterial, the longest messages first, and counts them. The caller's messages do not
// change: the log keeps every word.
func prepareMaterial(ctx context.Context, req Request) (_ Request, shortened int, err error) {
	req.Previous, req.Focus = redact.Text(req.Previous), redact.Text(req.Focus)
	sizes := make([]int, len(req.Messages))
	for i, m := range req.Messages {
		sizes[i] = m.TextBytes()
	}
	share := prompttext.FairShare(sizes, MaxMaterial)
	messages := make([]core.Message, 0, len(req.Messages))
	for slice, missing := range core.Slices(req.Messages, loadBytes) {
		if missing > 0 {
			if slice, err = req.Load(ctx, slice); err != nil {
				return req, 0, fmt.Errorf("load what is to be summarized: %w", err)
			}
		}
		for _, m := range slice {
			if m.Role != core.RoleTool && m.TextBytes() > share { // tool results are shown in part anyway
				shortened++
			}
			messages = append(messages, reduceMessage(m, share))
		}
	}
	req.Messages = messages
	return req, shortened, nil
}

// reduceMessage returns the message with texts of at most limit bytes, without secrets.
func reduceMessage(m core.Message, limit int) core.Message {
	size := m.TextBytes()
	text := func(s string) string {
		if size <= limit {
			return redact.Text(s)
		}
		return headAndTail(s, int(float64(limit)*float64(len(s))/float64(size)))
	}
	m.Content, m.Metadata = text(m.Content), nil
	m.ToolCalls = slices.Clone(m.ToolCalls)
	for i, c := range m.ToolCalls {
		m.ToolCalls[i].Arguments, m.ToolCalls[i].Signature = text(c.Arguments), ""
	}
	m.Parts = slices.Clone(m.Parts)
	for i, p := range m.Parts {
		m.Parts[i].Text, m.Parts[i].Name, m.Parts[i].Signature = text(p.Text), redact.Text(p.Name), ""
	}
	return m
}

// headAndTail returns the beginning and the end of a text without secrets, about limit
// bytes together. It reads no more of the text than it needs.
func headAndTail(text string, limit int) string {
	if len(text) <= limit {
		return redact.Text(text)
	}
	if limit < minSizeForTail {
		return redactedEnd(text, limit, core.Clip)
	}
	front, back := redactedEnd(text, limit-limit/3, core.Clip), redactedEnd(text, limit/3, prompttext.Tail)
	return front + prompttext.Missing(len(text)-limit, "bytes") + back
}

// redactedEnd returns the end of a longer text that cut keeps, at most limit bytes, without secrets.
func redactedEnd(text string, limit int, cut func(string, int) string) string {
	read := cut(text, limit+edgeBytes)
	clean := redact.Text(read)
	if len(read) < len(text) {
		clean = cut(clean, len(clean)-edgeBytes) // may hold half a secret
	}
	return cut(clean, limit)
}
