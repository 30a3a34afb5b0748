package fakeslack

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// triggerLife is how long a trigger_id opens a view.
const triggerLife = 3 * time.Second

// Answer is what the app answered to an interaction or a command within 3 seconds.
type Answer struct {
	Status int
	Body   string
}

// View is a modal that the app opened.
type View struct {
	ID, TeamID, User string
	JSON             json.RawMessage
}

// trigger allows one view.
type trigger struct {
	user    *User
	created time.Time
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

// Click presses a button of a message, or of an ephemeral one that the user sees. The value
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
	h := &hook{ws: u.ws, user: u, ts: ts}
	h.channel = u.ws.findChannel(channel)
	payload := reply{"type": "block_actions"}
	var blocks json.RawMessage
	i := slices.IndexFunc(u.ws.ephemerals, func(e Ephemeral) bool { return e.TS == ts && e.User == u.ID })
	if i >= 0 {
		h.ephemeral, h.thread, blocks = true, u.ws.ephemerals[i].ThreadTS, u.ws.ephemerals[i].Blocks
	} else {
		_, m, err := u.findMessage(channel, ts)
		if err != nil {
			return nil, err
		}
		h.thread, blocks = m.ThreadTS, m.Blocks
		payload["message"] = m.clone()
	}
	button, err := findButton(blocks, actionID, value)
	if err != nil {
		return nil, err
	}
	button.ActionTS = s.newTS()
	container := reply{"type": "message", "message_ts": ts, "channel_id": channel, "is_ephemeral": h.ephemeral}
	if h.thread != "" {
		container["thread_ts"] = h.thread
	}
	payload["container"], payload["actions"], payload["state"] = container, []element{button}, reply{"values": reply{}}
	return u.newInteraction(payload, h), nil
}

// findButton returns the button with the action, and the value unless it is "".
func findButton(raw json.RawMessage, actionID, value string) (element, error) {
	var blocks []struct {
		BlockID   string   `json:"block_id"`
		Accessory *element `json:"accessory"`
		Elements  []struct {
			element
			Positive *element `json:"positive_button"`
			Negative *element `json:"negative_button"`
		} `json:"elements"`
	}
	_ = json.Unmarshal(raw, &blocks) // without blocks there are no buttons
	for i, b := range blocks {
		var buttons []element
		if b.Accessory != nil {
			buttons = append(buttons, *b.Accessory)
		}
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
		&hook{ws: u.ws, channel: c, user: u, ts: ts, thread: m.threadRoot()})
	s.mu.Unlock()
	return s.deliverNow(d)
}

// newInteraction adds what all interactions have.
func (u *User) newInteraction(payload reply, h *hook) *delivery {
	s := u.ws.server
	payload["user"] = reply{"id": u.ID, "username": u.Name, "name": u.Name, "team_id": u.ws.ID}
	payload["team"] = reply{"id": u.ws.ID, "domain": u.ws.Name}
	if u.ws.orgWide {
		payload["team"] = nil
	}
	payload["channel"] = reply{"id": h.channel.ID, "name": h.channel.Name}
	payload["api_app_id"], payload["token"], payload["enterprise"], payload["is_enterprise_install"] = s.opts.AppID, "verification", nil, u.ws.orgWide
	if u.ws.EnterpriseID != "" {
		payload["enterprise"] = reply{"id": u.ws.EnterpriseID, "name": u.ws.EnterpriseID}
	}
	payload["trigger_id"], payload["response_url"] = s.addTrigger(u), s.addHook(h)
	return &delivery{envelope: "interactive", url: s.urls.Interactions, contentType: "application/x-www-form-urlencoded", payload: payload}
}

// Command uses a slash command of the app, such as "/context", with a text. The app's
// answer is shown as Slack does it: an ephemeral message, or one for all.
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
		"command": command, "text": text, "api_app_id": s.opts.AppID, "is_enterprise_install": strconv.FormatBool(u.ws.orgWide),
		"response_url": s.addHook(h), "trigger_id": s.addTrigger(u)}}
	if u.ws.EnterpriseID != "" {
		d.payload["enterprise_id"] = u.ws.EnterpriseID
	}
	s.mu.Unlock()
	got, err := s.deliverNow(d)
	if err == nil && got.Body != "" && got.Body != "null" {
		err = s.showAnswer(h, got.Body)
	}
	return got, err
}

// showAnswer shows the body of the answer to a command. It takes mu.
func (s *Server) showAnswer(h *hook, body string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := args{}
	if json.Unmarshal([]byte(body), &a) != nil {
		a = args{"text": body}
	}
	return h.applyAnswer(a)
}

// deliverNow sends what is not retried. It takes mu.
func (s *Server) deliverNow(d *delivery) (Answer, error) {
	a := s.attemptDelivery(d, 0, "")
	if a.Reason != "" {
		return Answer{Status: a.Status, Body: string(a.body)}, errors.New("the app did not acknowledge: " + a.Reason)
	}
	return Answer{Status: a.Status, Body: string(a.body)}, nil
}

func (s *Server) addTrigger(u *User) string {
	id := s.newID("trigger-")
	s.triggers[id] = &trigger{user: u, created: s.opts.Now()}
	return id
}

func viewsOpen(c *call) (reply, error) {
	t := c.s.triggers[c.args.text("trigger_id")]
	view := c.args.raw("view")
	var parsed map[string]any
	switch {
	case t == nil || t.user.ws != c.ws:
		return nil, failure{code: "invalid_trigger_id"}
	case c.s.opts.Now().Sub(t.created) > triggerLife:
		return nil, failure{code: "expired_trigger_id"}
	case json.Unmarshal(view, &parsed) != nil || parsed["type"] != "modal" || parsed["title"] == nil:
		return nil, failure{code: "invalid_arguments"}
	}
	delete(c.s.triggers, c.args.text("trigger_id"))
	v := View{ID: c.s.newID("V"), TeamID: c.ws.ID, User: t.user.ID, JSON: view}
	c.s.views = append(c.s.views, v)
	parsed["id"], parsed["team_id"] = v.ID, v.TeamID
	return reply{"view": parsed}, nil
}

// Views returns the modals that the app opened for a user, oldest first.
func (u *User) Views() []View {
	u.ws.server.mu.Lock()
	defer u.ws.server.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(u.ws.server.views), func(v View) bool { return v.User != u.ID })
}
