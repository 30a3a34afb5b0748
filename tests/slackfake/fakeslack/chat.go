package fakeslack

import (
	"encoding/json"
)

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
