package fakeslack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Reasons of retries, as in X-Slack-Retry-Reason.
const (
	reasonTimeout    = "http_timeout"
	reasonError      = "http_error"
	reasonConnection = "connection_failed"
)

// Delivery is an event that was sent to the app, or waits for it.
type Delivery struct {
	ID       string // event_id
	Type     string // of the event, with its subtype, as message.message_changed
	Attempts []Attempt
	Done     bool // acknowledged, or given up
}

// Attempt is one request of a delivery.
type Attempt struct {
	Reason string // why it failed: http_timeout, http_error or connection_failed; "" if it was acknowledged
	Status int    // of the answer
}

// Deliveries returns all events that were sent or wait, oldest first.
func (s *Server) Deliveries() []Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Delivery, 0, len(s.deliveries))
	for _, d := range s.deliveries {
		c := *d
		c.Attempts = slices.Clone(d.Attempts)
		list = append(list, c)
	}
	return list
}

// delivery is something to be sent to the app.
type delivery struct {
	queue       string // the channel that an event is from, with its workspace: its events are sent in order
	envelope    string // its type in Socket Mode
	url         string
	contentType string
	payload     reply
	record      *Delivery // of an event; nil for interactions and commands, which are sent once
}

// answer is what the app said.
type answer struct {
	Attempt
	noRetry bool
	body    []byte
}

// enqueueEvent queues an event.
func (s *Server) enqueueEvent(d *delivery) {
	if s.ctx.Err() != nil {
		return // closed
	}
	s.pending[d.queue]++
	s.deliveries = append(s.deliveries, d.record)
	s.heldEvents = append(s.heldEvents, d)
	if !s.eventFaults.Held {
		s.releaseHeld()
	}
}

// releaseHeld moves the events that are held back to their queues.
func (s *Server) releaseHeld() {
	for _, d := range s.heldEvents {
		_, draining := s.queues[d.queue]
		s.queues[d.queue] = append(s.queues[d.queue], d)
		if !draining {
			s.work.Go(func() { s.drainQueue(d.queue) })
		}
	}
	s.heldEvents = nil
}

// drainQueue delivers what is in a queue, one after the other, and removes the queue when it is
// empty: while it is in the map, somebody drains it. It takes mu.
func (s *Server) drainQueue(name string) {
	for {
		s.mu.Lock()
		queue := s.queues[name]
		if len(queue) == 0 {
			delete(s.queues, name)
			s.mu.Unlock()
			return
		}
		duplicate := s.eventFaults.Duplicate
		s.mu.Unlock()
		d := queue[0]
		first := s.attemptDelivery(d, 0, "")
		if duplicate && first.Reason == "" {
			s.attemptDelivery(d, 0, "")
		}
		s.mu.Lock()
		s.queues[name] = s.queues[name][1:]
		s.mu.Unlock()
		if first.Reason == "" {
			s.retryEvent(d, first)
		} else {
			s.work.Go(func() { s.retryEvent(d, first) })
		}
	}
}

// retryEvent sends an event until it is acknowledged or the attempts are used up, and marks it
// as done. It takes mu.
func (s *Server) retryEvent(d *delivery, last answer) {
	for n, delay := range s.opts.RetryDelays {
		if last.Reason == "" || last.noRetry || !waitFor(s.ctx, delay) {
			break
		}
		last = s.attemptDelivery(d, n+1, last.Reason)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d.record.Done = true
	if s.pending[d.queue]--; s.pending[d.queue] == 0 {
		delete(s.pending, d.queue)
	}
	s.notifyWaiters()
}

// attemptDelivery makes one attempt, over Socket Mode if the app has used it. It takes mu.
func (s *Server) attemptDelivery(d *delivery, retry int, reason string) answer {
	s.mu.Lock()
	dead, socketMode := s.eventFaults.Dead && d.record != nil, s.socketMode
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(s.ctx, s.opts.AckTimeout)
	defer cancel()
	var a answer
	switch {
	case dead:
		a.Reason = reasonConnection
	case socketMode:
		a = s.sendToSocket(ctx, d, retry, reason)
	case d.url == "":
		a.noRetry, a.Reason = true, reasonConnection
	default:
		a = s.sendToURL(ctx, d, retry, reason)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.record != nil {
		d.record.Attempts = append(d.record.Attempts, a.Attempt)
	}
	s.notifyWaiters()
	return a
}

func (s *Server) sendToURL(ctx context.Context, d *delivery, retry int, reason string) answer {
	body := d.encodeBody()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url, bytes.NewReader(body))
	if err != nil {
		return answer{Attempt: Attempt{Reason: reasonConnection}, noRetry: true}
	}
	request.Header.Set("Content-Type", d.contentType)
	request.Header.Set("User-Agent", "Slackbot 1.0 (+https://api.slack.com/robots)")
	if retry > 0 {
		request.Header.Set("X-Slack-Retry-Num", strconv.Itoa(retry))
		request.Header.Set("X-Slack-Retry-Reason", reason)
	}
	signHeader(request.Header, signingSecret, body)
	response, err := s.client.Do(request)
	if err != nil {
		return answer{Attempt: Attempt{Reason: connectionReason(err)}}
	}
	defer response.Body.Close()
	a := answer{Attempt: Attempt{Status: response.StatusCode}, noRetry: response.Header.Get("X-Slack-No-Retry") == "1"}
	if a.body, err = io.ReadAll(io.LimitReader(response.Body, maxBody)); err != nil {
		a.Reason = connectionReason(err)
	} else if response.StatusCode/100 != 2 {
		a.Reason = reasonError
	}
	return a
}

func connectionReason(err error) string {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return reasonTimeout
	}
	return reasonConnection
}

// encodeBody returns the payload as the request URL gets it: JSON, a command's fields, or an
// interaction as the field payload.
func (d *delivery) encodeBody() []byte {
	if d.envelope == "slash_commands" {
		values := url.Values{}
		for name, value := range d.payload {
			text, _ := value.(string)
			values.Set(name, text)
		}
		return []byte(values.Encode())
	}
	data, err := json.Marshal(d.payload)
	if err != nil {
		panic(err) // our own types
	}
	if d.envelope == "interactive" {
		return []byte(url.Values{"payload": {string(data)}}.Encode())
	}
	return data
}

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
