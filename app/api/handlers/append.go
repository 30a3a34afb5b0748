package handlers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/ops"
	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// wantsRun reports whether the message starts a run.
func wantsRun(m ops.NewMessage) bool { return m.Run == nil || *m.Run }

// checkFields refuses fields that do not apply with, or without, a run, or that an edit in place does
// not change: the tags run and edit of the fields say so.
func checkFields(m ops.NewMessage, isEdit bool) error {
	var faults core.Faults
	values := reflect.ValueOf(m)
	for _, f := range ops.Fields(values.Type()) {
		value, with := values.FieldByIndex(f.Index), f.Tag.Get("run")
		switch {
		case value.IsZero(), value.Kind() == reflect.Slice && value.Len() == 0, f.Name == "role" && m.Role == core.RoleUser:
		case with != "" && with != strconv.FormatBool(wantsRun(m)):
			faults.Add(f.Name, "is allowed only with run: %s", with)
		case f.Name == "source" && !slices.Contains([]core.Source{core.SourceAPI, core.SourceWeb, core.SourceCLI}, m.Source) && (wantsRun(m) || m.Source != core.SourceSlack):
			faults.Add(f.Name, "must be api, web or cli") // slack without a run: nothing is sent to Slack
		case isEdit && !wantsRun(m) && f.Tag.Get("edit") == "run":
			faults.Add(f.Name, "cannot be changed by an edit with run: false")
		}
	}
	if name := m.Options.Internal(); name != "" {
		faults.Add("options", "has the unknown field %q", name)
	}
	return invalidError(faults)
}

// messageAnswer is the answer to a message without a run.
type messageAnswer struct {
	Message core.Message `json:"message"`
}

// appendOnly appends a message to the log without a run: 201, or 200 if it is there already and an idempotency
// key is not its client_message_id.
func (h Native) appendOnly(c *gin.Context, m ops.NewMessage) error {
	message := core.Message{
		Role: m.Role, Content: m.Content, ToolCalls: m.ToolCalls, ToolCallID: m.ToolCallID, ToolName: m.ToolName,
		Author: m.Author, AuthorID: m.AuthorID, Source: cmp.Or(m.Source, core.SourceAPI), ClientMessageID: m.ClientMessageID, Metadata: m.Metadata,
	}
	if m.CreatedAt != nil {
		message.CreatedAt = *m.CreatedAt
	}
	stored, repeated, err := h.Transfer.Append(c.Request.Context(), scopeOf(c), m.SessionID, message)
	if err != nil {
		return err
	}
	status, key := http.StatusCreated, c.GetHeader(keyHeader)
	switch {
	case repeated && key != m.ClientMessageID:
		status = http.StatusOK
	case repeated && !mayRepeat(stored, message):
		return core.KeyReused("the message " + string(stored.ID))
	}
	return writeJSON(c, status, messageAnswer{Message: stored})
}

// mayRepeat reports whether the message may be the one that was stored first without a run. One that was
// changed since may have been.
func mayRepeat(first, m core.Message) bool {
	if first.RunID != "" {
		return false
	}
	if first.RevisedAt != nil || first.DeletedAt != nil {
		return true
	}
	if m.Role == core.RoleAssistant {
		m.Content, _ = llm.CutThoughts(m.Content) // as it is stored
	}
	texts := func(m core.Message) [6]string {
		return [6]string{string(cmp.Or(m.Role, core.RoleUser)), core.CleanText(m.Content), m.ToolCallID, m.ToolName, core.CleanText(m.Author), m.AuthorID}
	}
	var before, now any // a database may write JSON in another way
	_, _ = json.Unmarshal(first.Metadata, &before), json.Unmarshal(m.Metadata, &now)
	return texts(first) == texts(m) && first.Source == m.Source && slices.Equal(first.ToolCalls, m.ToolCalls) && reflect.DeepEqual(before, now) &&
		(m.CreatedAt.IsZero() || first.CreatedAt.Equal(m.CreatedAt.Truncate(time.Microsecond)))
}

// requestHash is the name of the value that HashOf returns.
const requestHash = "request hash"

// hashRequest keeps the hash of a request with an idempotency key, of whose body data is all that
// counts.
func hashRequest(c *gin.Context, data []byte) {
	if key := c.GetHeader(keyHeader); key != "" {
		sum := sha256.Sum256(fmt.Appendf(nil, "%q %s %s\n%x", key, c.Request.Method, c.Request.URL.RequestURI(), sha256.Sum256(data)))
		c.Set(requestHash, hex.EncodeToString(sum[:]))
	}
}

// HashOf returns the hash of a request whose idempotency key is the client_message_id; else it is empty.
func HashOf(c *gin.Context, clientMessageID string) string {
	if clientMessageID != c.GetHeader(keyHeader) {
		return ""
	}
	return c.GetString(requestHash)
}

// KeyedContext returns the context for the commit of a request with an idempotency key that begins
// no run, on a route where others do: the commit takes the key.
func KeyedContext(c *gin.Context) context.Context {
	ctx, key := c.Request.Context(), c.GetHeader(keyHeader)
	if key == "" {
		return ctx
	}
	hash := func() (string, error) { return c.GetString(requestHash), nil }
	return core.WithKeyedWork(ctx, core.KeyedWork{Request: KeyedRequest(c, key), BodyHash: hash})
}

// keyLife is how long a key is known.
const keyLife = 24 * time.Hour

// KeyedRequest returns the request with its idempotency key, which it does not hold yet. Each end
// user has a separate set of keys.
func KeyedRequest(c *gin.Context, key string) core.KeyedRequest {
	caller, _ := core.IdentityFrom(c.Request.Context())
	sent := key
	if caller.User != "" {
		sum := sha256.Sum256([]byte(caller.User))
		key = "user " + hex.EncodeToString(sum[:16]) + " " + key
	}
	return core.KeyedRequest{Owner: caller.Owner, Key: key, Sent: sent, Target: c.Request.Method + " " + c.Request.URL.RequestURI(), Keep: keyLife, Work: keyLife}
}

// keyHeader is the header that makes retries safe.
const keyHeader = "Idempotency-Key"

// maxKey bounds an idempotency key in bytes.
const maxKey = 200

// IdempotencyKey returns the request's idempotency key, "" if it has none.
func IdempotencyKey(r *http.Request) (string, error) {
	keys := r.Header.Values(keyHeader)
	if len(keys) == 0 {
		return "", nil
	}
	key := keys[0]
	valid := len(keys) == 1 && key != "" && len(key) <= maxKey
	for i := range len(key) {
		valid = valid && key[i] >= ' ' && key[i] <= '~'
	}
	if !valid {
		return "", core.OneFault(keyHeader, "must be 1 to %d ASCII characters, and given once", maxKey)
	}
	return key, nil
}

// readNewMessage reads the path and the body of a message, JSON or a form with files, into in, which
// has the message at body. An idempotency key is its client_message_id if it has none.
func (h Native) readNewMessage(c *gin.Context, in any, body *ops.NewMessage) error {
	if err := readParams(c, in); err != nil {
		return err
	}
	read := func() error { return readInto(c, in) }
	if isForm(c.Request) {
		read = func() error { return h.readFormMessage(c, body) }
	}
	if err := read(); err != nil {
		return err
	}
	key, err := IdempotencyKey(c.Request)
	if err != nil {
		return err
	}
	if err := checkWebhook(scopeOf(c), body.Webhook); err != nil {
		return err
	}
	body.ClientMessageID = cmp.Or(body.ClientMessageID, key)
	_, isEdit := in.(*ops.EditedMessage)
	return checkFields(*body, isEdit)
}
