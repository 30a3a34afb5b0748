package fakeslack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// reply is a JSON object.
type reply map[string]any

// failure is an answer with ok:false.
type failure struct {
	code     string
	messages []string // response_metadata.messages
}

func (f failure) Error() string { return f.code }

// call is one call of a method.
type call struct {
	s     *Server
	ws    *Workspace // of the token; nil with an app-level token or none
	token *token     // nil for methods without
	args  args
}

// method is a method of the Web API.
type method struct {
	kind string // of the token: anyToken, appToken or noToken
	run  func(*call) (reply, error)
}

const (
	anyToken = "any"
	noToken  = "none"
)

// methodTable returns every method of the Web API that there is.
func methodTable() map[string]method {
	return map[string]method{
		"agents.sessions.setStatus": {anyToken, sessionsSetStatus},
		"apps.connections.open":     {appToken, connectionsOpen},
		"auth.test":                 {anyToken, authTest},
		"chat.appendStream":         {anyToken, appendStream},
		"chat.delete":               {anyToken, chatDelete},
		"chat.postEphemeral":        {anyToken, chatPostEphemeral},
		"chat.postMessage":          {anyToken, chatPostMessage},
		"chat.startStream":          {anyToken, startStream},
		"chat.stopStream":           {anyToken, stopStream},
		"chat.update":               {anyToken, chatUpdate},
		"conversations.info":        {anyToken, conversationsInfo},
		"conversations.replies":     {anyToken, conversationsReplies},
		"files.info":                {anyToken, filesInfo},
		"oauth.v2.access":           {noToken, oauthAccess},
		"users.info":                {anyToken, usersInfo},
	}
}

// Call is a call of the Web API that the server has answered.
type Call struct {
	Method  string
	TeamID  string
	Channel string
	Args    map[string]any
	Error   string // the code of an answer with ok:false, or the status, as 429
	Lost    bool   // the connection broke before the answer
}

// Calls returns the calls of a method, or of all with "", oldest first.
func (s *Server) Calls(method string) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var calls []Call
	for _, c := range s.calls {
		if method == "" || c.Method == method {
			calls = append(calls, c)
		}
	}
	return calls
}

func (s *Server) serveMethod(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("method")
	a, err := decodeArgs(r)
	if user, password, ok := r.BasicAuth(); ok && err == nil {
		a["client_id"], a["client_secret"] = user, password
	}
	if value := bearerToken(r); value != "" && err == nil {
		a["token"] = value
	}
	fault := s.takeFault(name)
	if fault.RetryAfter > 0 || fault.Status > 0 {
		s.recordCall(name, a, strconv.Itoa(fault.statusCode()), false)
		fault.writeRefusal(w)
		return
	}
	var answer reply
	if err == nil && fault.Error == "" {
		answer, err = s.runMethod(w.Header(), name, a)
	} else if err == nil {
		err = failure{code: fault.Error}
	}
	s.recordCall(name, a, errorCode(err), fault.LoseAnswer)
	if fault.LoseAnswer {
		panic(http.ErrAbortHandler)
	}
	writeAnswer(w, answer, err)
}

// runMethod executes a method. It takes mu.
func (s *Server) runMethod(header http.Header, name string, a args) (reply, error) {
	m, ok := s.methods[name]
	if !ok {
		return nil, failure{code: "unknown_method"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &call{s: s, args: a}
	if m.kind != noToken {
		t, err := s.checkToken(a.text("token"))
		if err != nil {
			return nil, err
		}
		if (m.kind == appToken) != (t.kind == appToken) {
			return nil, failure{code: "not_allowed_token_type"}
		}
		if c.token = t; t.user != nil {
			c.ws = t.user.ws
		}
		header.Set("X-OAuth-Scopes", strings.Join(scopes(), ","))
	}
	answer, err := m.run(c)
	s.notifyWaiters()
	return answer, err
}

// recordCall keeps a call. It takes mu.
func (s *Server) recordCall(name string, a args, code string, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := Call{Method: name, Channel: firstOf(a.text("channel"), a.text("channel_id")), Args: map[string]any{}, Error: code, Lost: lost}
	maps.Copy(c.Args, a)
	if t := s.tokens[a.text("token")]; t != nil && t.user != nil {
		c.TeamID = t.user.ws.ID
	}
	delete(c.Args, "token")
	s.calls = append(s.calls, c)
	s.notifyWaiters()
}

func errorCode(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// writeAnswer writes the answer of a method as Slack does: errors are 200, too.
func writeAnswer(w http.ResponseWriter, answer reply, err error) {
	var f failure
	if errors.As(err, &f) {
		answer = reply{"error": f.code}
		if len(f.messages) > 0 {
			answer["response_metadata"] = reply{"messages": f.messages}
		}
	}
	full := reply{"ok": err == nil}
	maps.Copy(full, answer)
	writeJSON(w, http.StatusOK, full)
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		http.Error(w, fmt.Sprintf("encode the answer: %v", err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(data)
}

// waitFor waits and reports whether the context still holds.
func waitFor(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// maxBody is how much of a request's body is read, in bytes.
const maxBody = 4 << 20

// args are the arguments of a method: strings from a form, any value from JSON.
type args map[string]any

// decodeArgs reads the arguments from the query and the body.
func decodeArgs(r *http.Request) (args, error) {
	r.Body = http.MaxBytesReader(nil, r.Body, maxBody)
	a := args{}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind == "application/json" {
		decoder := json.NewDecoder(r.Body)
		decoder.UseNumber()
		if err := decoder.Decode(&a); err != nil && !errors.Is(err, io.EOF) { // no body is no arguments
			return nil, failure{code: "invalid_json"}
		}
		if a == nil { // the body was null
			a = args{}
		}
		return a, nil
	}
	if err := r.ParseMultipartForm(maxBody); err != nil && !errors.Is(err, http.ErrNotMultipart) {
		return nil, failure{code: "invalid_form_data"}
	}
	for name, values := range r.Form {
		a[name] = values[0]
	}
	return a, nil
}

// text returns an argument as a string, "" if it is missing or null.
func (a args) text(name string) string {
	switch v := a[name].(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		return fmt.Sprint(v)
	}
}

func (a args) flag(name string) bool {
	v := a.text(name)
	return v == "true" || v == "1"
}

func (a args) number(name string, otherwise int) int {
	if n, err := strconv.Atoi(a.text(name)); err == nil && n > 0 {
		return n
	}
	return otherwise
}

// raw returns an argument that is JSON, in a form as a string; nil if it is missing.
func (a args) raw(name string) json.RawMessage {
	switch v := a[name].(type) {
	case nil:
		return nil
	case string:
		return json.RawMessage(strings.TrimSpace(v))
	default:
		data, err := json.Marshal(v)
		if err != nil {
			return nil
		}
		return data
	}
}

// decode reads a JSON argument; a missing one leaves the target alone.
func (a args) decode(name string, target any) error {
	raw := a.raw(name)
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, target); err != nil {
		return failure{code: "invalid_arguments", messages: []string{"[ERROR] " + name + " is not valid JSON"}}
	}
	return nil
}

// bearerToken returns the token of a request's header.
func bearerToken(r *http.Request) string {
	value, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return ""
	}
	return value
}
