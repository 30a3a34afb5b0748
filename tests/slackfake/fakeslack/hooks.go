package fakeslack

import (
	"net/http"
	"slices"
	"time"
)

// Limits of a response_url.
const (
	hookUses = 5
	hookLife = 30 * time.Minute
)

// hook is a response_url: the app may answer a command or an interaction there.
type hook struct {
	ws        *Workspace
	channel   *Channel
	user      *User
	ts        string // of the message with the button, "" for commands
	thread    string
	ephemeral bool // only the user sees that message

	uses    int
	created time.Time
}

func (s *Server) addHook(h *hook) string {
	id := s.newID("hook-")
	h.created = s.opts.Now()
	s.hooks[id] = h
	return s.URL + "/hooks/" + id
}

// serveHook takes an answer of the app. It takes mu.
func (s *Server) serveHook(w http.ResponseWriter, r *http.Request) {
	a, err := decodeArgs(r)
	if err == nil {
		err = s.useHook(r.PathValue("id"), a) //nolint:contextcheck // events outlive the request
	}
	s.recordCall("response_url", a, errorCode(err), false)
	if err != nil {
		writeJSON(w, http.StatusNotFound, reply{"ok": false, "error": err.Error()})
		return
	}
	writeJSON(w, http.StatusOK, reply{"ok": true})
}

// useHook takes mu.
func (s *Server) useHook(id string, a args) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hooks[id]
	switch {
	case h == nil:
		return failure{code: "invalid_url"}
	case s.opts.Now().Sub(h.created) > hookLife:
		return failure{code: "expired_url"}
	case h.uses >= hookUses:
		return failure{code: "used_url"}
	}
	h.uses++
	return h.applyAnswer(a)
}

// applyAnswer shows an answer: instead of the message with the button, for all, or for the user.
func (h *hook) applyAnswer(a args) error {
	if a.flag("delete_original") {
		return h.replaceOriginal(nil)
	}
	m := Message{Blocks: a.raw("blocks"), ThreadTS: firstOf(a.text("thread_ts"), h.thread)}
	m.Text, _ = truncateText(a.text("text"))
	if m.Text == "" && len(m.Blocks) == 0 {
		return failure{code: "no_text"}
	}
	if len(m.Blocks) > 0 {
		if err := CheckBlocks(m.Blocks); err != nil {
			return err
		}
	}
	switch {
	case a.flag("replace_original"):
		return h.replaceOriginal(&m)
	case a.text("response_type") == "in_channel":
		_, err := h.ws.insertMessage(h.channel, h.ws.bot, m)
		return err
	}
	h.ws.ephemerals = append(h.ws.ephemerals, Ephemeral{Channel: h.channel.ID, User: h.user.ID, ThreadTS: m.ThreadTS, TS: h.ws.server.newTS(), Text: m.Text, Blocks: m.Blocks})
	h.ws.server.notifyWaiters()
	return nil
}

// replaceOriginal changes the message with the button, or deletes it with nil.
func (h *hook) replaceOriginal(by *Message) error {
	if h.ephemeral {
		i := slices.IndexFunc(h.ws.ephemerals, func(e Ephemeral) bool { return e.TS == h.ts })
		switch {
		case i < 0:
			return failure{code: "message_not_found"}
		case by == nil:
			h.ws.ephemerals = slices.Delete(h.ws.ephemerals, i, i+1)
		default:
			h.ws.ephemerals[i].Text, h.ws.ephemerals[i].Blocks = by.Text, by.Blocks
		}
		h.ws.server.notifyWaiters()
		return nil
	}
	m := h.channel.findMessage(h.ts)
	switch {
	case m == nil:
		return failure{code: "message_not_found"}
	case m.AppID != h.ws.server.opts.AppID:
		return failure{code: "cant_update_message"}
	case by == nil:
		h.ws.removeMessage(h.channel, m)
	default:
		h.ws.changeMessage(h.channel, m, firstOf(m.User, m.BotID), func(m *Message) { m.Text, m.Blocks = by.Text, by.Blocks })
	}
	return nil
}
