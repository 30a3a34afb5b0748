package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"bobbin/app/core"
)

// chatGPTConversation is a conversation as ChatGPT exports it: a tree, whose path to the current node is what
// its page shows.
type chatGPTConversation struct {
	Title       string                 `json:"title"`
	CurrentNode string                 `json:"current_node"`
	Mapping     map[string]chatGPTNode `json:"mapping"`
}

type chatGPTNode struct {
	Parent  string          `json:"parent"`
	Message *chatGPTMessage `json:"message"` // nil at the root
}

type chatGPTMessage struct {
	Author struct {
		Role string `json:"role"`
		Name string `json:"name"` // of the tool
	} `json:"author"`
	CreateTime float64 `json:"create_time"` // seconds since 1970
	Recipient  string  `json:"recipient"`   // "all", or the tool that is called
	Content    struct {
		Type     string            `json:"content_type"`
		Parts    []json.RawMessage `json:"parts"`
		Text     string            `json:"text"`
		Result   string            `json:"result"`
		Thoughts []struct {
			Content string `json:"content"`
		} `json:"thoughts"`
	} `json:"content"`
	Metadata struct {
		Hidden bool   `json:"is_visually_hidden_from_conversation"`
		Model  string `json:"model_slug"`
	} `json:"metadata"`
}

// path returns the visible messages from the root to the current node. Without one it ends at the newest
// message; a node that was deleted ends the way up.
func (c chatGPTConversation) path() []*chatGPTMessage {
	at := c.CurrentNode
	if _, ok := c.Mapping[at]; !ok {
		newest := -1.0
		for id, node := range c.Mapping {
			if m := node.Message; m != nil && (m.CreateTime > newest || m.CreateTime == newest && id > at) {
				at, newest = id, m.CreateTime
			}
		}
	}
	var out []*chatGPTMessage
	for range len(c.Mapping) { // a tree with a cycle ends, too
		node, ok := c.Mapping[at]
		if !ok {
			break
		}
		if m := node.Message; m != nil && !m.Metadata.Hidden && m.Author.Role != "system" {
			out = append(out, m)
		}
		at = node.Parent
	}
	slices.Reverse(out)
	return out
}

// message returns the message in Bobbin's shape, and how many images and files it only mentions.
func (m *chatGPTMessage) message() (core.Message, int) {
	omitted := 0
	texts := []string{m.Content.Text, m.Content.Result}
	for _, raw := range m.Content.Parts {
		var part struct {
			Type string `json:"content_type"`
			Text string `json:"text"`
		}
		if json.Unmarshal(raw, &part.Text) != nil {
			if _ = json.Unmarshal(raw, &part); part.Text == "" {
				omitted++
				part.Text = fmt.Sprintf("[%s: not imported]", core.Clip(part.Type, 200))
			}
		}
		texts = append(texts, part.Text)
	}
	texts = slices.DeleteFunc(texts, func(s string) bool { return strings.TrimSpace(s) == "" })
	text := strings.Join(texts, "\n")
	out := core.Message{Role: core.RoleAssistant, Content: text, Model: m.Metadata.Model, OnPath: true}
	if m.CreateTime > 0 && m.CreateTime < 1<<33 {
		out.CreatedAt = time.UnixMicro(int64(m.CreateTime * 1e6)).UTC()
	}
	switch {
	case m.Author.Role == "user":
		out.Role, out.Model = core.RoleUser, ""
	case text == "":
	case m.Author.Role == "tool":
		out.Content = fmt.Sprintf("[result of %s]\n%s", m.Author.Name, text)
	case m.Recipient != "" && m.Recipient != "all":
		out.Content = fmt.Sprintf("[call of %s]\n%s", m.Recipient, text)
	}
	for _, t := range m.Content.Thoughts {
		if t.Content != "" {
			out.Parts = append(out.Parts, core.Part{Type: "reasoning", Text: t.Content})
		}
	}
	return out, omitted
}
