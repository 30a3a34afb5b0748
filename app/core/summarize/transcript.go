package summarize

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/prompttext"
	"bobbin/app/core/redact"
)

// How much of a message the summarizer sees, in characters.
const (
	resultCharacters       = 2_000 // of a tool result
	budgetResultCharacters = 500   // of a tool result with preset budget
	argumentCharacters     = 500   // of a tool call's arguments
)

// piece is one message as the summarizer sees it.
type piece struct {
	text   string
	tokens int  // of the text and a line break
	tool   bool // a tool's result
	cut    bool // the text is not complete
}

// transcriptPieces renders the messages, one piece each, without system rows and empty ones.
func transcriptPieces(count core.TextCounter, messages []core.Message, preset string) []piece {
	resultLimit := resultCharacters
	if preset == PresetBudget {
		resultLimit = budgetResultCharacters
	}
	pieces := make([]piece, 0, len(messages))
	for _, m := range messages {
		if text := renderMessage(m, resultLimit); text != "" {
			pieces = append(pieces, piece{text: text, tokens: count.Text(text) + 1, tool: m.Role == core.RoleTool})
		}
	}
	return pieces
}

// renderMessage returns the message as escaped text: "[seq] role: text", a line more for
// each tool call, long tool results cut. Empty = the message has no content.
func renderMessage(m core.Message, resultLimit int) string {
	var lines []string
	switch m.Role {
	case core.RoleSystem:
		return ""
	case core.RoleTool:
		name := safeName(m.ToolName)
		if m.Status == core.MessageFailed {
			name += " (failed)"
		}
		lines = append(lines, fmt.Sprintf("[%s] tool %s: %s", messageRef(m), name, makeHarmless(prompttext.Characters(m.Content, resultLimit))))
	default:
		said := m
		said.Content = prompttext.WithSpeaker(m)
		if text := spokenText(said); text != "" {
			lines = append(lines, fmt.Sprintf("[%s] %s: %s", messageRef(m), m.Role, makeHarmless(text)))
		}
	}
	for _, c := range m.ToolCalls {
		arguments := makeHarmless(prompttext.Characters(c.Arguments, argumentCharacters))
		lines = append(lines, fmt.Sprintf("[%s] %s calls %s(%s)", messageRef(m), m.Role, safeName(c.Name), arguments))
	}
	return strings.Join(lines, "\n")
}

// spokenText returns the text of a message, with a description of each attachment, without its reasoning.
func spokenText(m core.Message) string {
	said := strings.TrimSpace(m.Content)
	for _, p := range m.Parts {
		switch p.Type {
		case core.PartReasoning, core.PartCompaction:
		case "text":
			if m.Content == "" {
				said += "\n" + p.Text
			}
		default:
			said += " [" + p.Describe() + "]"
		}
	}
	return strings.TrimSpace(said)
}

// messageRef returns the name of a message in the transcript and the ledger: its seq,
// which is short and can be looked up; without one the end of its id.
func messageRef(m core.Message) string {
	if m.Seq > 0 {
		return fmt.Sprint(m.Seq)
	}
	id := string(m.ID)
	return safeName(id[max(len(id)-8, 0):])
}

// safeName replaces the characters by which a name could break out of its line.
func safeName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune("<>[]():", r) {
			return '_'
		}
		return r
	}, core.Clip(strings.ToValidUTF8(name, "_"), 64))
	if name == "" {
		return "?"
	}
	return name
}

// turnLine looks like the beginning of a message, or of what a chat template begins one with.
var turnLine = regexp.MustCompile(`(?mi)(^|[\r\v\f\x{85}\x{2028}\x{2029}])([ \t]*)\[[ \t]*([0-9a-f]{1,20})[ \t]*\][ \t]*(user|assistant|tool|system)\b`)

// makeHarmless escapes data so that it can neither leave its fence (prompttext.Harmless) nor
// look like another message of the transcript.
func makeHarmless(text string) string {
	text = prompttext.Harmless(text)
	if strings.Contains(text, "[") {
		text = turnLine.ReplaceAllString(text, "$1$2($3) $4")
	}
	return text
}

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

// CheckNative returns why the words of a provider's own compaction are no summary of the request's
// messages; nil = they may be one. Earlier are the words of the compaction that it extends. They
// pass the same checks as a model's answer, but nothing is mended: they go back as they came.
// Errors of Load and of ctx are returned as well.
func CheckNative(ctx context.Context, count core.TextCounter, req Request, earlier, text string) error {
	req, _, err := prepareMaterial(ctx, req)
	if err != nil {
		return err
	}
	if redact.Text(text) != text || core.CleanText(text) != text {
		return errSecrets
	}
	clean := cleanAnswer(text)
	if clean == "" {
		return errEmpty
	}
	transcript, _ := fitPieces(count, transcriptPieces(count, req.Messages, req.Preset), math.MaxInt)
	held := evidence{transcript: transcript, previous: req.Previous + "\n" + earlier, minTokens: minSummaryTokens(req.Replaces, req.Limit)}
	return held.checkText(clean, count.Text(clean))
}
