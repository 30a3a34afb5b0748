package fakeslack

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed page.html
var pageHTML []byte

// pollTime is how long the page's request waits for a change.
const pollTime = 25 * time.Second

// addPage adds the page to try an app with, and what it calls. Other sites' pages cannot.
func (s *Server) addPage() {
	protection := http.NewCrossOriginProtection()
	s.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(pageHTML)
	})
	s.mux.HandleFunc("GET /signin", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, "<!doctype html><title>Sign in</title><h1>Sign in to your workspace</h1>")
	})
	s.mux.Handle("GET /page/state", protection.Handler(http.HandlerFunc(s.servePageState)))
	s.mux.Handle("POST /page/act", protection.Handler(http.HandlerFunc(s.servePageAction)))
}

// servePageState answers with the state, as soon as it is newer than the page's. It takes mu.
func (s *Server) servePageState(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.Atoi(r.FormValue("after"))
	ctx, cancel := context.WithTimeout(r.Context(), pollTime)
	defer cancel()
	_ = s.Wait(ctx, func() bool { // without a change the page gets the same again
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.version > after
	})
	writeJSON(w, http.StatusOK, s.pageState())
}

// pageState takes mu.
func (s *Server) pageState() reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	workspaces := []reply{}
	for _, ws := range s.workspaces {
		channels := []reply{}
		for _, c := range ws.channels {
			channels = append(channels, reply{"id": c.ID, "name": c.Name, "kind": c.Kind, "user": c.User, "messages": ws.pageMessages(c)})
		}
		users := []reply{}
		for _, u := range ws.users {
			users = append(users, reply{"id": u.ID, "name": u.RealName, "bot": u.BotID != ""})
		}
		workspaces = append(workspaces, reply{"id": ws.ID, "name": ws.Name, "users": users, "channels": channels, "ephemerals": append([]Ephemeral{}, ws.ephemerals...), "installed": ws.installed})
	}
	states := []reply{}
	for key, status := range s.sessions {
		states = append(states, reply{"team": key.team, "channel": key.channel, "ts": key.ts, "session": status})
	}
	last := []Delivery{}
	for _, d := range s.deliveries[max(0, len(s.deliveries)-30):] {
		last = append(last, Delivery{ID: d.ID, Type: d.Type, Attempts: slices.Clone(d.Attempts), Done: d.Done})
	}
	return reply{"version": s.version, "workspaces": workspaces, "threads": states, "deliveries": last, "calls": append([]Call{}, s.calls[max(0, len(s.calls)-30):]...)}
}

func (w *Workspace) pageMessages(c *Channel) []reply {
	list := []reply{}
	for _, m := range c.messages {
		f := jsonFields(m)
		f["markdown"] = m.Markdown()
		if m.Stream != nil {
			f["tasks"], f["streaming"] = m.Stream.Tasks, w.isStreaming(m)
		}
		list = append(list, f)
	}
	return list
}

// servePageAction does what somebody clicked on the page.
func (s *Server) servePageAction(w http.ResponseWriter, r *http.Request) {
	a, err := decodeArgs(r)
	if err == nil {
		err = s.actAsUser(a) //nolint:contextcheck // events outlive the request
	}
	if err != nil {
		writeJSON(w, http.StatusBadRequest, reply{"error": err.Error()})
		return
	}
	writeJSON(w, http.StatusOK, reply{})
}

// actAsUser acts as a user. It takes mu.
func (s *Server) actAsUser(a args) error {
	s.mu.Lock()
	var u *User
	if ws := findFirst(s.workspaces, func(w *Workspace) bool { return w.ID == a.text("team") }); ws != nil {
		u = ws.findUser(a.text("user"))
	}
	s.mu.Unlock()
	if u == nil {
		return failure{code: "user_not_found"}
	}
	channel, ts := a.text("channel"), a.text("ts")
	var err error
	switch a.text("act") {
	case "dm":
		u.DM()
	case "post":
		_, err = u.Send(channel, Message{Text: u.ws.escapeMarkup(a.text("text")), ThreadTS: a.text("thread")})
	case "command":
		command, text, _ := strings.Cut(a.text("text"), " ")
		if command == "/invite" { // Slack's own; the app is in every channel
			return nil
		}
		_, err = u.Command(channel, command, text)
	case "edit":
		err = u.Edit(channel, ts, u.ws.escapeMarkup(a.text("text")))
	case "delete":
		err = u.Delete(channel, ts)
	case "click":
		_, err = u.Click(channel, ts, a.text("action_id"), a.text("value"))
	case "stop":
		err = u.StopAgent(channel, ts)
	default:
		err = failure{code: "unknown_action"}
	}
	return err
}

// escapeMarkup returns a typed text as Slack stores it: escaped, with @names as mentions. It
// takes mu.
func (w *Workspace) escapeMarkup(text string) string {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	text = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
	longestFirst := slices.SortedFunc(slices.Values(w.users), func(a, b *User) int { return len(b.Name) - len(a.Name) })
	for _, u := range longestFirst { // "@bobbin" begins with "@bob"
		text = strings.ReplaceAll(text, "@"+u.Name, u.Mention())
	}
	return text
}
