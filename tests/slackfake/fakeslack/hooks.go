package fakeslack

import (
	"net/http"
)

// hook is a response_url: the app may answer a command or an interaction there.
type hook struct {
	ws      *Workspace
	channel *Channel
	user    *User
	thread  string
}

func (s *Server) addHook(h *hook) string {
	id := s.newID("hook-")
	s.hooks[id] = h
	return s.URL + "/hooks/" + id
}

// serveHook takes an answer of the app. It takes mu.
func (s *Server) serveHook(w http.ResponseWriter, r *http.Request) {
	a, err := decodeArgs(r)
	if err == nil {
		err = s.useHook(r.PathValue("id"), a)
	}
	s.recordCall("response_url", a, errorCode(err), false)
	if err != nil {
		writeJSON(w, http.StatusNotFound, reply{"ok": false, "error": err.Error()})
		return
	}
	writeJSON(w, http.StatusOK, reply{"ok": true})
}

// useHook shows an answer to the user. It takes mu.
func (s *Server) useHook(id string, a args) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hooks[id]
	if h == nil {
		return failure{code: "invalid_url"}
	}
	text, _ := truncateText(a.text("text"))
	if text == "" {
		return failure{code: "no_text"}
	}
	h.ws.ephemerals = append(h.ws.ephemerals, Ephemeral{Channel: h.channel.ID, User: h.user.ID, ThreadTS: h.thread, TS: h.ws.server.newTS(), Text: text})
	h.ws.server.notifyWaiters()
	return nil
}
