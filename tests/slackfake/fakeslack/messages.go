package fakeslack

import (
	"encoding/json"
	"slices"
	"strings"
)

// Message is a message as events and conversations.history have it.
type Message struct {
	Type         string          `json:"type"`
	Subtype      string          `json:"subtype,omitempty"`
	User         string          `json:"user,omitempty"`
	BotID        string          `json:"bot_id,omitempty"`
	AppID        string          `json:"app_id,omitempty"`
	BotProfile   *BotProfile     `json:"bot_profile,omitempty"`
	Text         string          `json:"text"`
	Blocks       json.RawMessage `json:"blocks,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
	Attachments  json.RawMessage `json:"attachments,omitempty"`
	Files        []*File         `json:"files,omitempty"`
	Team         string          `json:"team,omitempty"`
	TS           string          `json:"ts"`
	ThreadTS     string          `json:"thread_ts,omitempty"`
	ParentUserID string          `json:"parent_user_id,omitempty"`
	ReplyCount   int             `json:"reply_count,omitempty"`
	LatestReply  string          `json:"latest_reply,omitempty"`
	ClientMsgID  string          `json:"client_msg_id,omitempty"`
	Edited       *Edited         `json:"edited,omitempty"`
	Hidden       bool            `json:"hidden,omitempty"`

	Channel string  `json:"-"`
	Stream  *Stream `json:"-"` // of a message that is or was streamed
}

// BotProfile is the app of a bot's message.
type BotProfile struct {
	ID     string `json:"id"`
	AppID  string `json:"app_id"`
	Name   string `json:"name"`
	TeamID string `json:"team_id"`
}

// Edited says who changed a message last, and when.
type Edited struct {
	User string `json:"user"`
	TS   string `json:"ts"`
}

// Ephemeral is a message that only one user sees.
type Ephemeral struct {
	Channel, User, ThreadTS, TS, Text string
	Blocks                            json.RawMessage
}

// threadRoot returns the ts of the message's thread.
func (m *Message) threadRoot() string { return firstOf(m.ThreadTS, m.TS) }

// Markdown returns what the message says: what was streamed, unless it was edited, else the texts of its markdown
// blocks and sections, else its text.
func (m Message) Markdown() string {
	if m.Stream != nil && m.Edited == nil {
		return m.Text
	}
	var blocks []struct {
		Type string          `json:"type"`
		Text json.RawMessage `json:"text"`
	}
	_ = json.Unmarshal(m.Blocks, &blocks) // without blocks there is nothing to read
	var texts []string
	for _, b := range blocks {
		var text string
		var object struct{ Text string }
		switch {
		case b.Type == "markdown" && json.Unmarshal(b.Text, &text) == nil:
			texts = append(texts, text)
		case b.Type == "section" && json.Unmarshal(b.Text, &object) == nil:
			texts = append(texts, object.Text)
		}
	}
	if len(texts) == 0 {
		return m.Text
	}
	return strings.Join(texts, "\n\n")
}

// Messages returns all messages of a channel, those in threads too, oldest first.
func (w *Workspace) Messages(channel string) []Message {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	c := w.findChannel(channel)
	if c == nil {
		return nil
	}
	return copyMessages(c.messages)
}

// Thread returns the messages of a thread, the first one is its root.
func (w *Workspace) Thread(channel, ts string) []Message {
	return slices.DeleteFunc(w.Messages(channel), func(m Message) bool { return m.threadRoot() != ts })
}

// Posts returns the app's messages in a channel, oldest first.
func (w *Workspace) Posts(channel string) []Message {
	id := appID
	return slices.DeleteFunc(w.Messages(channel), func(m Message) bool { return m.AppID != id })
}

// Ephemerals returns what the app showed a user alone.
func (w *Workspace) Ephemerals(user string) []Ephemeral {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.ephemerals), func(e Ephemeral) bool { return e.User != user })
}

func copyMessages(messages []*Message) []Message {
	list := make([]Message, 0, len(messages))
	for _, m := range messages {
		list = append(list, m.clone())
	}
	return list
}

func (m *Message) clone() Message {
	c := *m
	c.Files = slices.Clone(m.Files)
	if m.Stream != nil {
		stream := *m.Stream
		stream.Tasks = slices.Clone(m.Stream.Tasks)
		c.Stream = &stream
	}
	return c
}

func (c *Channel) findMessage(ts string) *Message {
	return findFirst(c.messages, func(m *Message) bool { return m.TS == ts })
}

// insertMessage stores a message of a user or bot, gives it its ts, and sends its events.
func (w *Workspace) insertMessage(c *Channel, u *User, m Message) (*Message, error) {
	m.Type, m.TS, m.Team, m.Channel = "message", w.server.newTS(), w.ID, c.ID
	if u.BotID != "" {
		m.BotID, m.AppID = u.BotID, u.AppID
		m.BotProfile = &BotProfile{ID: u.BotID, AppID: u.AppID, Name: u.Name, TeamID: w.ID}
	}
	m.User = u.ID
	if m.ThreadTS != "" {
		root := c.findMessage(m.ThreadTS)
		if root == nil || root.threadRoot() != root.TS {
			return nil, failure{code: "thread_not_found"}
		}
		root.ThreadTS, root.LatestReply, m.ParentUserID = root.TS, m.TS, root.User
		root.ReplyCount++
	}
	c.messages = append(c.messages, &m)
	w.server.emitMessage(w, c, &m)
	w.server.notifyWaiters()
	return &m, nil
}

// changeMessage changes a message and sends message_changed. An edit is marked as one; a
// stream's growth or an unfurled link is not.
func (w *Workspace) changeMessage(c *Channel, m *Message, editor string, change func(*Message)) {
	before := m.clone()
	change(m)
	if editor != "" {
		m.Edited = &Edited{User: editor, TS: w.server.newTS()}
	}
	if editor != "" && w.bot != nil && !containsMention(before.Text, w.bot.ID) {
		w.server.emitMention(w, c, m)
	}
	w.server.emitHidden(w, c, reply{"subtype": "message_changed", "message": m.clone(), "previous_message": before})
	w.server.notifyWaiters()
}

// removeMessage deletes a message. The root of a thread with replies becomes a tombstone:
// Slack sends message_changed for it, not message_deleted.
func (w *Workspace) removeMessage(c *Channel, m *Message) {
	if m.ReplyCount > 0 {
		w.changeMessage(c, m, "", func(m *Message) {
			*m = Message{Type: "message", Subtype: "tombstone", User: "USLACKBOT", Text: "This message was deleted.", Hidden: true,
				TS: m.TS, ThreadTS: m.TS, ReplyCount: m.ReplyCount, LatestReply: m.LatestReply, Channel: m.Channel}
		})
		return
	}
	c.messages = slices.DeleteFunc(c.messages, func(other *Message) bool { return other == m })
	if root := c.findMessage(m.ThreadTS); root != nil {
		root.ReplyCount--
	}
	w.server.emitHidden(w, c, reply{"subtype": "message_deleted", "deleted_ts": m.TS, "previous_message": m.clone()})
	w.server.notifyWaiters()
}

// warningTruncated is the warning of an answer whose message was too long.
const warningTruncated = "message_truncated"

// findChannel returns the conversation that an argument names.
func (c *call) findChannel(name string) (*Channel, error) {
	id := c.args.text(name)
	if channel := c.ws.findChannel(id); channel != nil {
		return channel, nil
	}
	if u := c.ws.findUser(id); u != nil && u.BotID == "" {
		return c.ws.openDM(u), nil
	}
	return nil, failure{code: "channel_not_found"}
}

// readContent reads what a message says, within Slack's limits. The warning is that of the
// answer, "" for none.
func (c *call) readContent() (m Message, warning string, err error) {
	m.Text, m.Blocks = c.args.text("text"), c.args.raw("blocks")
	markdown := c.args.text("markdown_text")
	if markdown != "" {
		if m.Text != "" || len(m.Blocks) > 0 {
			return m, "", failure{code: "markdown_text_conflict"}
		}
		if m.Blocks, err = json.Marshal([]reply{{"type": "markdown", "text": markdown}}); err != nil {
			return m, "", err
		}
		m.Text = markdown
		if countChars(markdown) > maxMarkdown {
			return m, "", failure{code: "msg_too_long"}
		}
	}
	if m.Text, warning = truncateText(m.Text); len(m.Blocks) > 0 {
		err = CheckBlocks(m.Blocks)
	}
	if err == nil {
		m.Metadata, err = checkMetadata(c.args.raw("metadata"))
	}
	return m, warning, err
}

func withWarning(r reply, warning string) reply {
	if warning != "" {
		r["warning"], r["response_metadata"] = warning, reply{"warnings": []string{warning}}
	}
	return r
}

func chatPostMessage(c *call) (reply, error) {
	channel, err := c.findChannel("channel")
	if err != nil {
		return nil, err
	}
	m, warning, err := c.readContent()
	if err == nil && m.Text == "" && len(m.Blocks) == 0 {
		err = failure{code: "no_text"}
	}
	if err != nil {
		return nil, err
	}
	m.ThreadTS, m.ClientMsgID = c.args.text("thread_ts"), c.args.text("client_msg_id")
	stored, err := c.ws.insertMessage(channel, c.token.user, m)
	if err != nil {
		return nil, err
	}
	return withWarning(reply{"channel": channel.ID, "ts": stored.TS, "message": stored.clone()}, warning), nil
}

// ownMessage returns the message that the caller wants to change.
func (c *call) ownMessage(refusal string) (*Channel, *Message, error) {
	channel, err := c.findChannel("channel")
	if err != nil {
		return nil, nil, err
	}
	m := channel.findMessage(c.args.text("ts"))
	switch {
	case m == nil:
		return nil, nil, failure{code: "message_not_found"}
	case m.Subtype == "tombstone" || m.BotID != c.token.user.BotID || m.BotID == "" && m.User != c.token.user.ID:
		return nil, nil, failure{code: refusal}
	}
	return channel, m, nil
}

// chatUpdate replaces text and blocks. Blocks that a call with a text leaves out are
// removed, metadata stay.
func chatUpdate(c *call) (reply, error) {
	channel, m, err := c.ownMessage("cant_update_message")
	if err != nil {
		return nil, err
	}
	content, warning, err := c.readContent()
	if err == nil && content.Text == "" && len(content.Blocks) == 0 {
		err = failure{code: "no_text"}
	}
	if err == nil && c.ws.isStreaming(m) {
		err = failure{code: "streaming_state_conflict"}
	}
	if err != nil {
		return nil, err
	}
	c.ws.changeMessage(channel, m, firstOf(m.User, m.BotID), func(m *Message) {
		m.Text, m.Blocks = content.Text, content.Blocks
		if len(content.Metadata) > 0 {
			m.Metadata = content.Metadata
		}
	})
	return withWarning(reply{"channel": channel.ID, "ts": m.TS, "text": m.Text, "message": m.clone()}, warning), nil
}

func chatDelete(c *call) (reply, error) {
	channel, m, err := c.ownMessage("cant_delete_message")
	if err != nil {
		return nil, err
	}
	c.ws.removeMessage(channel, m)
	return reply{"channel": channel.ID, "ts": m.TS}, nil
}

func chatPostEphemeral(c *call) (reply, error) {
	channel, err := c.findChannel("channel")
	if err != nil {
		return nil, err
	}
	u := c.ws.findUser(c.args.text("user"))
	if u == nil {
		return nil, failure{code: "user_not_in_channel"}
	}
	m, warning, err := c.readContent()
	if err == nil && m.Text == "" && len(m.Blocks) == 0 {
		err = failure{code: "no_text"}
	}
	if err != nil {
		return nil, err
	}
	e := Ephemeral{Channel: channel.ID, User: u.ID, ThreadTS: c.args.text("thread_ts"), TS: c.s.newTS(), Text: m.Text, Blocks: m.Blocks}
	c.ws.ephemerals = append(c.ws.ephemerals, e)
	return withWarning(reply{"message_ts": e.TS}, warning), nil
}
