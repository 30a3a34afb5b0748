package openai

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
)

// conversationObject is a session as the Conversations API shows it.
type conversationObject struct {
	ID        string            `json:"id"`
	Object    string            `json:"object"`
	CreatedAt int64             `json:"created_at"`
	Metadata  map[string]string `json:"metadata"`
}

func newConversationObject(s core.Session) conversationObject {
	o := conversationObject{ID: conversationPrefix + string(s.ID), Object: "conversation", CreatedAt: s.CreatedAt.Unix(), Metadata: map[string]string{}}
	var all map[string]any
	_ = json.Unmarshal(s.Metadata, &all) // none, or an object
	for key, value := range all {
		if text, ok := value.(string); ok {
			o.Metadata[key] = text
		}
	}
	return o
}

// CreateConversation answers POST /v1/conversations.
func (a *API) CreateConversation(c *gin.Context) error {
	body, err := handlers.ReadForeign[struct {
		Items    input             `json:"items"`
		Metadata map[string]string `json:"metadata"`
	}](c)
	if err != nil {
		return err
	}
	who, err := readCaller(c, body.Metadata, "")
	if err != nil {
		return err
	}
	var metadata json.RawMessage
	if len(body.Metadata) > 0 {
		metadata, _ = core.EncodeJSON(body.Metadata) // texts cannot fail
	}
	var messages []message
	if len(body.Items) > 0 {
		if messages, err = body.Items.messages("items"); err != nil {
			return err
		}
	}
	ctx := c.Request.Context()
	// It is listed and kept once it has its items: some may be refused.
	session, err := a.Chat.CreateSession(ctx, who.tenant, core.Session{UserID: who.user, Source: core.SourceAPI, Metadata: metadata, Temporary: len(messages) > 0})
	if err == nil && session.LastSeq == 0 { // else a repetition of a request whose answer was lost
		_, err = a.appendMessages(core.WithoutKeyedWork(ctx), who, core.AppendMessages{SessionID: session.ID}, messages)
	}
	if err == nil && session.Temporary {
		session, err = a.Chat.UpdateSession(core.WithoutKeyedWork(ctx), who.tenant, session.ID, core.SessionPatch{Keep: true})
	}
	return writeJSON(c, newConversationObject(session), err)
}

// conversationOf returns the session of the path's conversation.
func (a *API) conversationOf(c *gin.Context) (core.Session, caller, error) {
	who, err := readCaller(c, nil, "")
	if err != nil {
		return core.Session{}, who, err
	}
	id, err := parseID[core.SessionID](conversationPrefix, c.Param("id"), "conversation")
	if err != nil {
		return core.Session{}, who, err
	}
	session, err := a.findSession(c.Request.Context(), who.tenant, id)
	if err == nil && c.Request.Method == http.MethodPost {
		session, err = a.keepSession(c.Request.Context(), who.tenant, session)
	}
	return session, who, err
}

// GetConversation answers GET /v1/conversations/{id}.
func (a *API) GetConversation(c *gin.Context) error {
	session, _, err := a.conversationOf(c)
	return writeJSON(c, newConversationObject(session), err)
}

// UpdateConversation answers POST /v1/conversations/{id}.
func (a *API) UpdateConversation(c *gin.Context) error {
	body, err := handlers.ReadForeign[struct {
		Metadata map[string]string `json:"metadata"`
	}](c)
	if err != nil {
		return err
	}
	session, who, err := a.conversationOf(c)
	if err != nil {
		return err
	}
	patch := core.SessionPatch{}
	if body.Metadata != nil {
		patch.Metadata, _ = core.EncodeJSON(body.Metadata)
	}
	session, err = a.Chat.UpdateSession(c.Request.Context(), who.tenant, session.ID, patch)
	return writeJSON(c, newConversationObject(session), err)
}

// DeleteConversation answers DELETE /v1/conversations/{id}. It archives the session: what
// removes data for good is the native API's deletion.
func (a *API) DeleteConversation(c *gin.Context) error {
	session, who, err := a.conversationOf(c)
	if err == nil {
		_, err = a.Chat.UpdateSession(c.Request.Context(), who.tenant, session.ID, core.SessionPatch{Archived: new(true)})
	}
	return writeJSON(c, struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Deleted bool   `json:"deleted"`
	}{conversationPrefix + string(session.ID), "conversation.deleted", true}, err)
}

type itemList struct {
	Object  string       `json:"object"`
	Data    []outputItem `json:"data"`
	FirstID string       `json:"first_id"`
	LastID  string       `json:"last_id"`
	HasMore bool         `json:"has_more"`
}

func newItemList(items []outputItem, more bool) itemList {
	list := itemList{Object: "list", Data: items, HasMore: more}
	if list.Data == nil {
		list.Data = []outputItem{}
	}
	if n := len(items); n > 0 {
		list.FirstID, list.LastID = items[0].ID, items[n-1].ID
	}
	return list
}

// mostItems bounds a list of items.
const mostItems = 100

// ListItems answers GET /v1/conversations/{id}/items: those of the current path, the newest first
// unless order=asc.
func (a *API) ListItems(c *gin.Context) error {
	session, who, err := a.conversationOf(c)
	if err != nil {
		return err
	}
	limit, err := strconv.Atoi(c.DefaultQuery("limit", "20"))
	if err != nil || limit < 1 || limit > mostItems {
		return core.OneFault("limit", "must be a number from 1 to %d", mostItems)
	}
	order := c.DefaultQuery("order", "desc")
	if order != "asc" && order != "desc" {
		return core.OneFault("order", "must be asc or desc")
	}
	q := core.MessageQuery{PageQuery: core.PageQuery{Limit: limit + 1}, Descending: order == "desc"}
	var items []outputItem // of the message of after that come behind it
	if after := c.Query("after"); after != "" {
		m, of, err := a.findItem(c, session.ID, after, q.Descending)
		if err != nil {
			return err
		}
		if items = of[1:]; q.Descending {
			q.Before = m.Seq
		} else {
			q.After = m.Seq
		}
	}
	page, err := a.listMessages(c, who, session.ID, q)
	if err != nil {
		return err
	}
	for _, m := range page.Items {
		items = append(items, orderedItems(m, q.Descending)...)
	}
	more := len(items) > limit || page.NextCursor != nil
	return writeJSON(c, newItemList(items[:min(limit, len(items))], more), nil)
}

// findItem returns an item with those of its message that come behind it, and the message.
func (a *API) findItem(c *gin.Context, session core.SessionID, item string, descending bool) (core.Message, []outputItem, error) {
	id, err := parseItemID(item)
	if err != nil {
		return core.Message{}, nil, err
	}
	caller, _ := core.IdentityFrom(c.Request.Context())
	m, err := a.Messages.Get(c.Request.Context(), caller.Tenant(), session, id)
	if err != nil {
		return m, nil, err
	}
	items := orderedItems(m, descending)
	i := slices.IndexFunc(items, func(one outputItem) bool { return one.ID == item })
	if i < 0 {
		return m, nil, core.Errorf(core.ErrNotFound, "the item %s does not exist", quoteShort(item))
	}
	return m, items[i:], nil
}

// orderedItems returns the items of a message.
func orderedItems(m core.Message, descending bool) []outputItem {
	items := itemsOf(m)
	if descending {
		slices.Reverse(items)
	}
	return items
}

// listMessages returns a page of messages and reserves the memory for it and for its JSON.
func (a *API) listMessages(c *gin.Context, who caller, id core.SessionID, q core.MessageQuery) (core.Page[core.Message], error) {
	if err := handlers.ReserveMemory(c, 2*core.MaxMessagePageBytes); err != nil {
		return core.Page[core.Message]{}, err
	}
	return a.Messages.List(c.Request.Context(), who.tenant, id, q)
}

// CreateItems answers POST /v1/conversations/{id}/items.
func (a *API) CreateItems(c *gin.Context) error {
	body, err := handlers.ReadForeign[struct {
		Items input `json:"items"`
	}](c)
	if err != nil {
		return err
	}
	session, who, err := a.conversationOf(c)
	if err != nil {
		return err
	}
	messages, err := body.Items.messages("items")
	if err != nil || len(messages) == 0 {
		return writeJSON(c, newItemList(nil, false), err)
	}
	last, err := a.appendMessages(c.Request.Context(), who, core.AppendMessages{SessionID: session.ID}, messages)
	if err != nil {
		return err
	}
	q := core.MessageQuery{PageQuery: core.PageQuery{Limit: min(mostItems, len(messages))}, After: last - int64(len(messages))}
	page, err := a.listMessages(c, who, session.ID, q)
	if err != nil {
		return err
	}
	var items []outputItem
	more := false
	for _, m := range page.Items {
		items, more = append(items, itemsOf(m)...), m.Seq < last
	}
	return writeJSON(c, newItemList(items, more), nil)
}

// GetItem answers GET /v1/conversations/{id}/items/{item}.
func (a *API) GetItem(c *gin.Context) error {
	session, _, err := a.conversationOf(c)
	if err != nil {
		return err
	}
	_, items, err := a.findItem(c, session.ID, c.Param("item"), false)
	if err != nil {
		return err
	}
	return writeJSON(c, items[0], nil)
}

// DeleteItem answers DELETE /v1/conversations/{id}/items/{item}: nothing of the content of the
// message that it is of is left.
func (a *API) DeleteItem(c *gin.Context) error {
	session, who, err := a.conversationOf(c)
	if err != nil {
		return err
	}
	id, err := parseItemID(c.Param("item"))
	if err == nil {
		err = a.Chat.DeleteMessage(c.Request.Context(), who.tenant, session.ID, id)
	}
	return writeJSON(c, newConversationObject(session), err)
}
