package fakeslack

import "fmt"

// Post writes a message into a channel and returns its ts. The text is Slack's markup:
// &amp;, &lt; and &gt; are escaped, and mentions are as User.Mention returns them.
func (u *User) Post(channel, text string) (string, error) {
	return u.Send(channel, Message{Text: text})
}

// Reply writes a message into a thread and returns its ts.
func (u *User) Reply(channel, thread, text string) (string, error) {
	return u.Send(channel, Message{Text: text, ThreadTS: thread})
}

// Send writes a message of which more than the text is given, such as its thread, subtype,
// blocks or client_msg_id, and returns its ts.
func (u *User) Send(channel string, m Message) (string, error) {
	u.ws.server.mu.Lock()
	defer u.ws.server.mu.Unlock()
	return u.sendMessage(channel, m)
}

func (u *User) sendMessage(channel string, m Message) (string, error) {
	c := u.ws.findChannel(channel)
	if c == nil {
		return "", fmt.Errorf("there is no channel %q in %s", channel, u.ws.Name)
	}
	if m.ClientMsgID == "" && u.BotID == "" {
		m.ClientMsgID = u.ws.server.newID("client-")
	}
	stored, err := u.ws.insertMessage(c, u, m)
	if err != nil {
		return "", err
	}
	return stored.TS, nil
}

// Upload shares a file in a channel, or in a thread if it is not "", and returns the
// message's ts.
func (u *User) Upload(channel, thread, text, name string, content []byte) (string, error) {
	u.ws.server.mu.Lock()
	defer u.ws.server.mu.Unlock()
	f := u.ws.addFile(u.ID, name, content)
	return u.sendMessage(channel, Message{Subtype: "file_share", Text: text, ThreadTS: thread, Files: []*File{f}})
}

// Edit changes the text of a message of the user.
func (u *User) Edit(channel, ts, text string) error {
	u.ws.server.mu.Lock()
	defer u.ws.server.mu.Unlock()
	c, m, err := u.findMessage(channel, ts)
	if err != nil {
		return err
	}
	if m.User != u.ID {
		return failure{code: "cant_update_message"}
	}
	u.ws.changeMessage(c, m, u.ID, func(m *Message) { m.Text, m.Blocks = text, nil })
	return nil
}

// Unfurl changes a message as Slack does when it shows a link's page: it is not an edit.
func (u *User) Unfurl(channel, ts string) error {
	u.ws.server.mu.Lock()
	defer u.ws.server.mu.Unlock()
	c, m, err := u.findMessage(channel, ts)
	if err == nil {
		u.ws.changeMessage(c, m, "", func(*Message) {})
	}
	return err
}

// Delete removes a message of the user.
func (u *User) Delete(channel, ts string) error {
	u.ws.server.mu.Lock()
	defer u.ws.server.mu.Unlock()
	c, m, err := u.findMessage(channel, ts)
	if err != nil {
		return err
	}
	if m.User != u.ID {
		return failure{code: "cant_delete_message"}
	}
	u.ws.removeMessage(c, m)
	return nil
}

// StopAgent presses the button Stop of an agent session. It is there while the session is processing.
func (u *User) StopAgent(channel, thread string) error {
	u.ws.server.mu.Lock()
	defer u.ws.server.mu.Unlock()
	c, _, err := u.findMessage(channel, thread)
	if err != nil {
		return err
	}
	if u.ws.threadState(c.ID, thread).Session != "processing" {
		return failure{code: "no_stop_button"}
	}
	streaming := []string{}
	for _, m := range c.messages {
		if m.threadRoot() == thread && u.ws.isStreaming(m) {
			streaming = append(streaming, m.TS)
		}
	}
	u.ws.server.emitEvent(u.ws, c.ID, reply{"type": "agent_session_stopped", "channel": c.ID, "user": u.ID, "thread_ts": thread, "streaming_message_ts": streaming})
	return nil
}

// findMessage returns a message and its channel.
func (u *User) findMessage(channel, ts string) (*Channel, *Message, error) {
	c := u.ws.findChannel(channel)
	if c == nil {
		return nil, nil, failure{code: "channel_not_found"}
	}
	m := c.findMessage(ts)
	if m == nil {
		return nil, nil, failure{code: "message_not_found"}
	}
	return c, m, nil
}
