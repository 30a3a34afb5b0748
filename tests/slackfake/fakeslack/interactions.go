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

// Click presses a button of a message. The value
// chooses between buttons with the same action, such as those for feedback; "" takes the
// first one.
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
