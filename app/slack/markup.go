package slack

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Marked parts of Slack's texts: <…>.
var markedPart = regexp.MustCompile(`<([^<>\s][^<>\n]*)>`)

// decodeMarkup returns a text of Slack as Markdown: mentions by names, links as links.
func decodeMarkup(text string, names resolved) string {
	var out strings.Builder
	end := 0
	for _, at := range markedPart.FindAllStringSubmatchIndex(text, -1) {
		out.WriteString(unescapeText(text[end:at[0]]))
		end = at[1]
		target, label, labeled := strings.Cut(text[at[2]:at[3]], "|")
		label = unescapeText(label)
		name := strings.TrimPrefix(label, "@")
		switch address := unescapeText(target); {
		case strings.HasPrefix(target, "@"):
			out.WriteString("@" + cmp.Or(label, names.of(target[1:])))
		case strings.HasPrefix(target, "#"):
			out.WriteString("#" + cmp.Or(strings.TrimPrefix(label, "#"), names.of(target[1:])))
		case strings.HasPrefix(target, "!subteam^"):
			out.WriteString("@" + cmp.Or(name, "group"))
		case strings.HasPrefix(target, "!date^"):
			out.WriteString(label)
		case strings.HasPrefix(target, "!"):
			out.WriteString("@" + cmp.Or(name, target[1:]))
		case labeled && label != "" && label != address && strings.TrimPrefix(strings.TrimPrefix(address, "https://"), "http://") != label:
			out.WriteString("[" + label + "](" + address + ")")
		default:
			out.WriteString(strings.TrimPrefix(address, "mailto:"))
		}
	}
	return out.String() + unescapeText(text[end:])
}

// stripMention removes a mention of the user from the beginning of a text, and only there.
func stripMention(text, user string) string {
	trimmed := strings.TrimSpace(text)
	for _, prefix := range []string{"<@" + user + ">", "<@" + user + "|"} {
		rest, ok := strings.CutPrefix(trimmed, prefix)
		if !ok || user == "" {
			continue
		}
		if strings.HasSuffix(prefix, "|") {
			if _, rest, ok = strings.Cut(rest, ">"); !ok {
				return text
			}
		}
		return strings.TrimLeft(rest, " \t\u00a0:,")
	}
	return text
}

// unescapeText is the reverse of escapeText.
func unescapeText(s string) string {
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(s)
}

// escapeText returns a text as Slack shows it literally: no mention, no link.
func escapeText(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

type richElement struct {
	Type     string          `json:"type"`
	Text     richText        `json:"text"`
	URL      string          `json:"url"`
	User     string          `json:"user_id"`
	Channel  string          `json:"channel_id"`
	Name     string          `json:"name"`
	Elements []richElement   `json:"elements"`
	Fields   []richElement   `json:"fields"`
	Rows     [][]richElement `json:"rows"` // of a table
}

// richText is a text, or an object that has one.
type richText string

// UnmarshalJSON takes both.
func (t *richText) UnmarshalJSON(data []byte) error {
	var object struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(data, (*string)(t)) == nil {
		return nil
	}
	if json.Unmarshal(data, &object) == nil {
		*t = richText(object.Text)
	}
	return nil
}

// maxRichDepth is deeper than Slack nests elements.
const maxRichDepth = 8

// blockText returns the text of a message's blocks in Slack's markup; empty if they have none.
func blockText(blocks json.RawMessage) string {
	var elements []richElement
	_ = json.Unmarshal(blocks, &elements) // what has another shape is left out
	var out strings.Builder
	writeRich(&out, elements, 0)
	return strings.TrimSpace(out.String())
}

func writeRich(out *strings.Builder, elements []richElement, depth int) {
	if depth > maxRichDepth {
		return
	}
	for _, e := range elements {
		switch e.Type {
		case "actions", "context_actions", "input", "button": // what people may do, not what is said
			continue
		case "user":
			out.WriteString("<@" + e.User + ">")
		case "channel":
			out.WriteString("<#" + e.Channel + ">")
		case "emoji":
			out.WriteString(":" + e.Name + ":")
		case "broadcast":
			out.WriteString("@")
		case "link":
			out.WriteString("<" + e.URL + "|" + escapeText(string(e.Text)) + ">")
		case "section", "header", "context", "mrkdwn", "plain_text":
			out.WriteString(string(e.Text)) // Slack's markup already
		default:
			out.WriteString(escapeText(string(e.Text)))
		}
		writeRich(out, e.Elements, depth+1)
		if e.Text != "" && len(e.Fields) > 0 {
			out.WriteString("\n")
		}
		writeRich(out, e.Fields, depth+1)
		for _, row := range e.Rows {
			for _, cell := range row {
				var text strings.Builder
				writeRich(&text, []richElement{cell}, depth+1)
				out.WriteString("| " + strings.TrimSpace(text.String()) + " ")
			}
			out.WriteString("|\n")
		}
		if strings.HasPrefix(e.Type, "rich_text") || slices.Contains([]string{"section", "header", "context", "mrkdwn", "plain_text", "markdown"}, e.Type) {
			out.WriteString("\n")
		}
	}
}
