package fakeslack

import (
	"encoding/json"
	"maps"
	"strings"
)

// jsonFields returns a value as a JSON object that more can be added to.
func jsonFields(value any) reply {
	r := reply{}
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		panic(err) // our own types
	}
	return r
}

// emitMessage sends the events of a new message: the message, and app_mention if it names
// the app in a channel.
func (s *Server) emitMessage(w *Workspace, c *Channel, m *Message) {
	event := jsonFields(m)
	event["channel"], event["channel_type"], event["event_ts"] = c.ID, c.Kind, m.TS
	s.emitEvent(w, c.ID, event)
	s.emitMention(w, c, m)
}

// emitMention sends app_mention if the message names the app in a channel: a new one, or one to
// which an edit added the mention.
func (s *Server) emitMention(w *Workspace, c *Channel, m *Message) {
	if w.bot == nil || c.Kind == "im" || m.User == w.bot.ID || !containsMention(m.Text, w.bot.ID) {
		return
	}
	event := jsonFields(m)
	event["type"], event["channel"], event["event_ts"] = "app_mention", c.ID, m.TS
	s.emitEvent(w, c.ID, event)
}

func containsMention(text, user string) bool {
	return strings.Contains(text, "<@"+user+">") || strings.Contains(text, "<@"+user+"|")
}

// emitHidden sends message_changed or message_deleted.
func (s *Server) emitHidden(w *Workspace, c *Channel, event reply) {
	ts := s.newTS()
	maps.Copy(event, reply{"type": "message", "hidden": true, "channel": c.ID, "channel_type": c.Kind, "ts": ts, "event_ts": ts})
	s.emitEvent(w, c.ID, event)
}

// emitEvent queues an event for the app, if it is installed in the workspace. Events of one
// channel are delivered in order.
func (s *Server) emitEvent(w *Workspace, channel string, event reply) {
	if !w.installed {
		return
	}
	if event["event_ts"] == nil {
		event["event_ts"] = s.newTS()
	}
	id := s.newID("Ev")
	payload := reply{"token": "verification", "team_id": w.ID, "context_team_id": w.ID, "context_enterprise_id": nil, "api_app_id": appID, "type": "event_callback",
		"event_id": id, "event_time": s.opts.Now().Unix(), "event": event, "is_ext_shared_channel": false,
		"authorizations": []reply{{"enterprise_id": nil, "team_id": w.ID, "user_id": w.bot.ID, "is_bot": true, "is_enterprise_install": false}}}
	kind, _ := event["type"].(string)
	if subtype, _ := event["subtype"].(string); subtype != "" {
		kind += "." + subtype
	}
	s.enqueueEvent(&delivery{queue: w.ID + "/" + channel, envelope: "events_api", url: s.urls.Events, contentType: "application/json",
		payload: payload, record: &Delivery{ID: id, Type: kind}})
}
