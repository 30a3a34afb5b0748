package fakeslack

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Answer is what the app answered to an interaction or a command within 3 seconds.
type Answer struct {
	Status int
	Body   string
}

// element is a button of a message.
type element struct {
	Type     string          `json:"type"`
	ActionID string          `json:"action_id"`
	BlockID  string          `json:"block_id"`
	Text     json.RawMessage `json:"text,omitempty"`
	Value    string          `json:"value"`
	Style    string          `json:"style,omitempty"`
	ActionTS string          `json:"action_ts"`
}

// Click presses a button of a message. The value chooses between buttons with the same action, such as those
// for feedback; "" takes the first one.
func (u *User) Click(channel, ts, actionID, value string) (Answer, error) {
	d, err := u.clickDelivery(channel, ts, actionID, value)
	if err != nil {
		return Answer{}, err
	}
	return u.ws.server.deliverNow(d)
}

// clickDelivery takes mu.
func (u *User) clickDelivery(channel, ts, actionID, value string) (*delivery, error) {
	s := u.ws.server
	s.mu.Lock()
	defer s.mu.Unlock()
	c, m, err := u.findMessage(channel, ts)
	if err != nil {
		return nil, err
	}
	button, err := findButton(m.Blocks, actionID, value)
	if err != nil {
		return nil, err
	}
	button.ActionTS = s.newTS()
	container := reply{"type": "message", "message_ts": ts, "channel_id": channel, "is_ephemeral": false}
	if m.ThreadTS != "" {
		container["thread_ts"] = m.ThreadTS
	}
	return u.newInteraction(reply{"type": "block_actions", "message": m.clone(), "container": container, "actions": []element{button}, "state": reply{"values": reply{}}},
		&hook{ws: u.ws, channel: c, user: u, thread: m.ThreadTS}), nil
}

// findButton returns the button with the action, and the value unless it is "".
func findButton(raw json.RawMessage, actionID, value string) (element, error) {
	var blocks []struct {
		BlockID  string `json:"block_id"`
		Elements []struct {
			element
			Positive *element `json:"positive_button"`
			Negative *element `json:"negative_button"`
		} `json:"elements"`
	}
	_ = json.Unmarshal(raw, &blocks) // without blocks there are no buttons
	for i, b := range blocks {
		var buttons []element
		for _, e := range b.Elements {
			buttons = append(buttons, e.element)
			for _, feedback := range []*element{e.Positive, e.Negative} {
				if feedback != nil {
					buttons = append(buttons, element{Type: e.Type, ActionID: e.ActionID, Text: feedback.Text, Value: feedback.Value})
				}
			}
		}
		for _, button := range buttons {
			if button.ActionID == actionID && (value == "" || button.Value == value) && (value != "" || button.Type != "feedback_buttons" || button.Value != "") {
				button.BlockID = firstOf(b.BlockID, fmt.Sprintf("block-%d", i))
				return button, nil
			}
		}
	}
	return element{}, fmt.Errorf("the message has no button %q with the value %q", actionID, value)
}

// Shortcut uses a message shortcut of the app.
func (u *User) Shortcut(channel, ts, callbackID string) (Answer, error) {
	s := u.ws.server
	s.mu.Lock()
	c, m, err := u.findMessage(channel, ts)
	if err != nil {
		s.mu.Unlock()
		return Answer{}, err
	}
	d := u.newInteraction(reply{"type": "message_action", "callback_id": callbackID, "message_ts": ts, "message": m.clone(), "action_ts": s.newTS()},
		&hook{ws: u.ws, channel: c, user: u, thread: m.threadRoot()})
	s.mu.Unlock()
	return s.deliverNow(d)
}

// newInteraction adds what all interactions have.
func (u *User) newInteraction(payload reply, h *hook) *delivery {
	s := u.ws.server
	payload["user"] = reply{"id": u.ID, "username": u.Name, "name": u.Name, "team_id": u.ws.ID}
	payload["team"] = reply{"id": u.ws.ID, "domain": u.ws.Name}
	payload["channel"] = reply{"id": h.channel.ID, "name": h.channel.Name}
	payload["api_app_id"], payload["token"], payload["enterprise"], payload["is_enterprise_install"] = appID, "verification", nil, false
	payload["trigger_id"], payload["response_url"] = s.newID("trigger-"), s.addHook(h)
	return &delivery{envelope: "interactive", url: s.urls.Interactions, contentType: "application/x-www-form-urlencoded", payload: payload}
}

// Command uses a slash command of the app, such as "/context", with a text.
func (u *User) Command(channel, command, text string) (Answer, error) {
	s := u.ws.server
	s.mu.Lock()
	c := u.ws.findChannel(channel)
	if c == nil {
		s.mu.Unlock()
		return Answer{}, failure{code: "channel_not_found"}
	}
	h := &hook{ws: u.ws, channel: c, user: u}
	d := &delivery{envelope: "slash_commands", url: s.urls.Commands, contentType: "application/x-www-form-urlencoded", payload: reply{
		"token": "verification", "team_id": u.ws.ID, "team_domain": u.ws.Name, "channel_id": c.ID, "channel_name": c.Name, "user_id": u.ID, "user_name": u.Name,
		"command": command, "text": text, "api_app_id": appID, "is_enterprise_install": "false",
		"response_url": s.addHook(h), "trigger_id": s.newID("trigger-")}}
	s.mu.Unlock()
	return s.deliverNow(d)
}

// deliverNow sends what is not retried. It takes mu.
func (s *Server) deliverNow(d *delivery) (Answer, error) {
	a := s.attemptDelivery(d, 0, "")
	if a.Reason != "" {
		return Answer{Status: a.Status, Body: string(a.body)}, errors.New("the app did not acknowledge: " + a.Reason)
	}
	return Answer{Status: a.Status, Body: string(a.body)}, nil
}

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
	if u.ws.server.sessions[threadKey{u.ws.ID, c.ID, thread}] != "processing" {
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
