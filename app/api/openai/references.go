package openai

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
)

// Limits of the messages that references name.
const (
	referenceStep     = 20       // messages loaded at a time
	maxReferenceBytes = 64 << 20 // of their texts
)

// resolveReferences puts the items of the log in the places of references to them: clients send back
// ids of items that they got from this server. It returns the session of the newest one; empty = there
// are no references. ErrNotFound if one names no item of the caller.
func (a *API) resolveReferences(c *gin.Context, in input) (core.SessionID, error) {
	if len(in) > maxMessages {
		return "", nil // which messages complains about
	}
	var ids []core.MessageID
	places := map[string]int{} // of the references, by the item
	for i, item := range in {
		if item.Type != "item_reference" && (item.Type != "" || item.Role != "" || item.ID == "") {
			continue
		}
		id, err := parseItemID(item.ID)
		if err != nil {
			return "", err
		}
		if _, twice := places[item.ID]; twice {
			return "", oneFault(fmt.Sprintf("input[%d].id", i), "the item %s is there twice", quoteShort(item.ID))
		}
		places[item.ID] = i
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var newest core.Message
	size := int64(0)
	caller, _ := core.IdentityFrom(c.Request.Context())
	for some := range slices.Chunk(slices.Compact(ids), referenceStep) {
		found, err := a.Messages.GetMessages(c.Request.Context(), caller.Tenant(), "", some)
		if err != nil {
			return "", err
		}
		read := int64(0)
		for _, m := range found {
			if m.ID > newest.ID { // ids rise with time
				newest = m
			}
			for _, item := range itemsOf(m) {
				place, wanted := places[item.ID]
				if !wanted {
					continue
				}
				in[place] = item.toInput(m)
				delete(places, item.ID)
			}
			read += int64(len(m.Content) + partBytes*len(m.Parts))
			for _, call := range m.ToolCalls {
				read += int64(len(call.Arguments))
			}
		}
		if size += read; size > maxReferenceBytes {
			return "", oneFault("input", "has references to more than %d bytes of text", maxReferenceBytes)
		}
		if err := handlers.ReserveMore(c, read); err != nil {
			return "", err
		}
	}
	for id := range places {
		return "", core.Errorf(core.ErrNotFound, "the item %s does not exist", quoteShort(id))
	}
	return newest.SessionID, nil
}

// toInput returns an item of the message as clients send it.
func (i outputItem) toInput(m core.Message) inputItem {
	in := inputItem{Type: i.Type, Role: i.Role, CallID: i.CallID, Name: i.Name}
	switch i.Type {
	case "message":
		in.Content.text = m.Content
		for _, p := range m.Parts {
			if p.BlobID != "" {
				in.Content.files = append(in.Content.files, file{id: p.BlobID})
			}
		}
	case "function_call":
		in.Arguments = *i.Arguments
	default:
		in.Output, _ = json.Marshal(*i.Output) // a text cannot fail
	}
	return in
}
