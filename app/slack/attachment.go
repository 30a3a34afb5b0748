package slack

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// attachment is what an app adds to its message, the preview of a link, or a message that was
// forwarded. Texts that are no texts are empty.
type attachment struct {
	Pretext   richText        `json:"pretext"`
	Title     richText        `json:"title"`
	TitleLink richText        `json:"title_link"`
	Text      richText        `json:"text"`
	Fallback  richText        `json:"fallback"`
	Author    richText        `json:"author_name"`
	Footer    richText        `json:"footer"` // of a forwarded message where it was posted
	Channel   richText        `json:"channel_id"`
	Preview   richText        `json:"from_url"` // the page of a link
	Shared    bool            `json:"is_share"`
	Unfurled  bool            `json:"is_msg_unfurl"`
	Files     []file          `json:"files"`
	Blocks    json.RawMessage `json:"blocks"`
	Fields    []struct {
		Title richText `json:"title"`
		Value richText `json:"value"`
	} `json:"fields"`
}

// attached returns what is attached to the message, but previews of pages.
func (e *event) attached() []attachment {
	var list []attachment
	_ = json.Unmarshal(e.Attachments, &list) // what has another shape is left out
	return slices.DeleteFunc(list, func(a attachment) bool { return a.Preview != "" && !a.quotes() })
}

// quotes reports whether the attachment is another message.
func (a attachment) quotes() bool { return a.Shared || a.Unfurled }

// allFiles returns the files of the message, and of what was forwarded.
func (e *event) allFiles() []file {
	all := slices.Clone(e.Files)
	for _, a := range e.attached() {
		all = append(all, a.Files...)
	}
	return all
}

// ownText returns the text of the message in Slack's markup. Where an app's message has blocks, they
// are what Slack shows, and the text is that of notifications.
func (e *event) ownText() string {
	if e.Bot == "" && strings.TrimSpace(e.Text) != "" {
		return e.Text
	}
	return cmp.Or(blockText(e.Blocks), e.Text)
}

// markup returns what the attachment says: of a forwarded message as a quotation with its author
// and channel.
func (a attachment) markup() string {
	title := string(a.Title)
	if a.TitleLink != "" && title != "" {
		title = "<" + string(a.TitleLink) + "|" + title + ">"
	}
	lines := []string{string(a.Pretext), title, cmp.Or(string(a.Text), blockText(a.Blocks))}
	if !a.quotes() {
		lines = slices.Insert(lines, 1, string(a.Author))
	}
	for _, f := range a.Fields {
		lines = append(lines, strings.Trim(string(f.Title)+": "+string(f.Value), ": "))
	}
	text := joinLines(lines...)
	text = cmp.Or(text, string(a.Fallback))
	if !a.quotes() {
		return text
	}
	where := string(a.Footer)
	if where == "" && a.Channel != "" {
		where = "<#" + string(a.Channel) + ">"
	}
	from := "Forwarded from " + cmp.Or(string(a.Author), "somebody")
	if where != "" {
		from += " (" + where + ")"
	}
	return from + ":\n> " + strings.ReplaceAll(text, "\n", "\n> ")
}

// joinLines joins the texts that are not empty.
func joinLines(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return strings.TrimSpace(s) == "" }), "\n")
}
