package apitest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"bobbin/app/core"
)

// What all worlds have, of the local owner: a session with two turns and a summary, one whose run waits for an
// approval, a memory, a file and an instruction.
//
//nolint:gochecknoglobals // set once, by Main
var (
	SessionID     string
	UserID        string // the first message
	AnswerID      string
	RunID         string // it has ended
	WaitingID     string
	WaitingRunID  string
	ApprovalID    string
	MemoryID      string
	BlobID        string
	InstructionID string
)

// An id that nothing has, and the file of the sample.
const (
	MissingID = "01920000-0000-7000-8000-00000000dead"
	Content   = "a,b\r\n1,2\r\n" // of the file
	FormType  = "multipart/form-data; boundary=x"
)

// Form is a form with one field and a file.
func Form(field, value string) string {
	return strings.Join([]string{
		"--x", `Content-Disposition: form-data; name="` + field + `"`, "", value,
		"--x", `Content-Disposition: form-data; name="file"; filename="numbers.csv"`, "Content-Type: text/html", "", Content + "--x--", "",
	}, "\r\n")
}

// Request returns a request as a program on this machine sends it. Each header is
// "Name: value"; a body is JSON unless a header says otherwise.
func Request(method, path, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, path, nil)
	if body != "" {
		r = httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
	}
	r.Host, r.RemoteAddr = "localhost:8080", "127.0.0.1:40000"
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	return r
}

// Do answers the request.
func Do(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// talk makes the sample.
func talk(server http.Handler) (err error) {
	ask := func(method, path, body string) map[string]any {
		w := Do(server, Request(method, "/api/v1"+path, body, "Content-Type: "+map[bool]string{true: FormType, false: "application/json"}[path == "/blobs"]))
		answer := map[string]any{}
		if failed := json.Unmarshal(w.Body.Bytes(), &answer); err == nil && (failed != nil || w.Code > 299) {
			err = fmt.Errorf("%s %s: got %d %s", method, path, w.Code, w.Body)
		}
		return answer
	}
	// id returns a value of an answer.
	id := func(answer map[string]any, names ...string) string {
		for _, name := range names {
			if list, ok := answer[name].([]any); ok && len(list) > 0 {
				answer[name] = list[0]
			}
			if inner, ok := answer[name].(map[string]any); ok {
				answer = inner
			} else {
				text, _ := answer[name].(string)
				return text
			}
		}
		return ""
	}
	SessionID = id(ask("POST", "/sessions", `{"title":"Greetings","user_id":"kim","timezone":"Europe/Vienna","metadata":{"team":"a"}}`), "id")
	at := "/sessions/" + SessionID
	answer := ask("POST", at+"/messages", `{"content":"Hello","client_message_id":"c-1"}`)
	RunID, UserID, AnswerID = id(answer, "run", "id"), id(answer, "run", "user_message_id"), id(answer, "message", "id")
	ask("POST", at+"/messages", `{"content":"`+strings.Repeat("And then? ", 40)+`"}`)
	ask("POST", at+"/summarize", "")
	InstructionID = id(ask("POST", at+"/standing-instructions", `{"text":"Be brief."}`), "id")
	WaitingID = id(ask("POST", "/sessions", `{"agent":"careful"}`), "id")
	answer = ask("POST", "/sessions/"+WaitingID+"/messages", `{"content":"Use the calculator."}`)
	WaitingRunID, ApprovalID = id(answer, "run", "id"), id(answer, "run", "approvals", "id")
	MemoryID = id(ask("POST", "/memories", `{"content":"The inspection is on Friday."}`), "id")
	BlobID = id(ask("POST", "/blobs", Form("session_id", SessionID)), "id")
	if err == nil && (ApprovalID == "" || AnswerID == "" || !core.ValidID(BlobID)) {
		err = fmt.Errorf("something is missing in the sample: %q %q %q", ApprovalID, AnswerID, BlobID)
	}
	return err
}
