package handlers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// runs reports whether the message is to be answered.
func (m newMessage) runs() bool { return m.Run == nil || *m.Run }

// fit refuses fields that do not go with what is to become of the message.
func (m newMessage) fit() error {
	var faults core.Faults
	only := func(given bool, field, when string) {
		if given {
			faults.Add(field, "is only for a message with run: %s", when)
		}
	}
	if m.runs() {
		only(m.Role != "" && m.Role != core.RoleUser, "role", "false")
		only(len(m.ToolCalls) > 0, "tool_calls", "false")
		only(m.ToolCallID != "", "tool_call_id", "false")
		only(m.ToolName != "", "tool_name", "false")
		only(m.CreatedAt != nil, "created_at", "false")
		return invalid(faults)
	}
	only(m.Model != "", "model", "true")
	only(m.Multitask != "", "multitask", "true")
	only(m.UserID != "", "user_id", "true")
	only(len(m.Parts) > 0, "parts", "true")
	only(m.Webhook != nil, "webhook", "true")
	return invalid(faults)
}

// messageAnswer is the answer to a message that is not answered by an agent.
type messageAnswer struct {
	Message core.Message `json:"message"`
}

// append puts a message into the log and runs nothing: 201, and 200 if it is there
// already.
func (h *Messages) append(c *gin.Context, id core.SessionID, m newMessage) error {
	source := m.Source
	if source != core.SourceSlack { // nobody is answered there for it
		var err error
		if source, err = sourceOf(source); err != nil {
			return err
		}
	}
	message := core.Message{
		Role: m.Role, Content: m.Content, ToolCalls: m.ToolCalls, ToolCallID: m.ToolCallID, ToolName: m.ToolName,
		Author: m.Author, Source: source, ClientMessageID: m.ClientMessageID, Metadata: json.RawMessage(m.Metadata),
	}
	if m.CreatedAt != nil {
		message.CreatedAt = *m.CreatedAt
	}
	stored, repeated, err := h.transfer.Append(c.Request.Context(), scopeOf(c), id, message)
	if err != nil {
		return err
	}
	status := http.StatusCreated
	if repeated {
		status = http.StatusOK
	}
	return answer(c, status, messageAnswer{Message: stored})
}

// keyHeader is the header that makes the repetition of a request harmless.
const keyHeader = "Idempotency-Key"

// maxKey bounds an idempotency key, in bytes.
const maxKey = 200

// IdempotencyKey returns the request's idempotency key, "" if it has none.
func IdempotencyKey(r *http.Request) (string, error) {
	keys := r.Header.Values(keyHeader)
	if len(keys) == 0 {
		return "", nil
	}
	key := keys[0]
	sane := len(keys) == 1 && key != "" && len(key) <= maxKey
	for i := range len(key) {
		sane = sane && key[i] >= ' ' && key[i] <= '~'
	}
	if !sane {
		return "", invalid([]core.FieldError{{Field: keyHeader, Detail: fmt.Sprintf("must be 1 to %d characters of ASCII, and be given once", maxKey)}})
	}
	return key, nil
}

// readMessage reads a message that is to be answered.
func (h *Messages) readMessage(c *gin.Context) (core.SendMessage, error) {
	id, err := idParam[core.SessionID](c, "session")
	if err != nil {
		return core.SendMessage{}, err
	}
	body, err := h.readNewMessage(c, id)
	if err != nil {
		return core.SendMessage{}, err
	}
	if !body.runs() {
		return core.SendMessage{}, invalid([]core.FieldError{{Field: "run", Detail: "must be true here: this message is answered"}})
	}
	return body.message(id)
}

// readNewMessage reads the body of a message, JSON or a form with files. An
// idempotency key is its client_message_id if it has none.
func (h *Messages) readNewMessage(c *gin.Context, session core.SessionID) (newMessage, error) {
	read := readBody[newMessage]
	if isForm(c.Request) {
		read = func(c *gin.Context) (newMessage, error) { return h.files.message(c, session) }
	}
	body, err := read(c)
	if err != nil {
		return body, err
	}
	key, err := IdempotencyKey(c.Request)
	if err != nil {
		return body, err
	}
	if err := checkWebhook(c, body.Webhook); err != nil {
		return body, err
	}
	body.ClientMessageID = cmp.Or(body.ClientMessageID, key)
	return body, body.fit()
}
