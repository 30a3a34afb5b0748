package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
)

// Prefixes of ids as clients of the Responses API see them.
const (
	responsePrefix     = "resp_"
	conversationPrefix = "conv_"
	messagePrefix      = "msg_"
	functionPrefix     = "fc_"
)

type inputItem struct {
	ID        string   `json:"id"` // of a reference
	Type      string   `json:"type"`
	Role      string   `json:"role"`
	Content   content  `json:"content"`
	CallID    string   `json:"call_id"`
	Name      string   `json:"name"`
	Arguments string   `json:"arguments"`
	Output    *content `json:"output"`
}

// input is the input of a response: a text of the user, or a list of items.
type input []inputItem

// UnmarshalJSON reads a text or a list of items.
func (in *input) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		*in = input{{Role: "user"}}
		return json.Unmarshal(data, &(*in)[0].Content)
	}
	if !bytes.HasPrefix(data, []byte("[")) {
		return errors.New("must be a text or a list of items")
	}
	return json.Unmarshal(data, (*[]inputItem)(in))
}

// messages returns the items as messages of a chat completion. Errors name the field of the request
// that has the items.
func (in input) messages(field string) ([]message, error) {
	var list []message
	var faults core.Faults
	for i, item := range in {
		at := fmt.Sprintf("%s[%d]", field, i)
		switch item.Type {
		case "", "message":
			if !slices.Contains([]string{"user", "assistant", "system", "developer"}, item.Role) {
				faults.Add(at+".role", "must be user, assistant, system or developer")
			}
			item.Content.check(&faults, at+".content")
			list = append(list, message{Role: strings.Replace(item.Role, "developer", "system", 1), Content: item.Content})
		case "function_call":
			call := toolCall{ID: item.CallID, Type: "function", Function: functionCall{Name: item.Name, Arguments: item.Arguments}}
			if n := len(list); n > 0 && list[n-1].Role == "assistant" {
				list[n-1].ToolCalls = append(list[n-1].ToolCalls, call)
				continue
			}
			list = append(list, message{Role: "assistant", ToolCalls: []toolCall{call}})
		case "function_call_output":
			output := cmp.Or(item.Output, &content{fault: ": is missing"})
			output.check(&faults, at+".output")
			list = append(list, message{Role: "tool", ToolCallID: item.CallID, Content: *output})
		case "reasoning": // of another response; the log has it
		default:
			faults.Add(at+".type", "the type %s is not supported; use message, function_call, function_call_output or item_reference", quoteShort(item.Type))
		}
	}
	if len(in) == 0 {
		faults.Add(field, "is empty")
	}
	if len(in) > maxMessages {
		faults.Add(field, "has %d items, at most %d are allowed", len(in), maxMessages)
	}
	return list, faults.Err()
}

// outputItem is an item of a response or of a conversation.
type outputItem struct {
	ID        string       `json:"id"`
	Type      string       `json:"type"` // message, function_call or function_call_output
	Status    string       `json:"status"`
	Role      string       `json:"role,omitempty"`
	Content   []outputPart `json:"content,omitzero"` // nil = it is no message
	CallID    string       `json:"call_id,omitempty"`
	Name      string       `json:"name,omitempty"`
	Arguments *string      `json:"arguments,omitempty"`
	Output    *string      `json:"output,omitempty"`
}

type outputPart struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Annotations []any  `json:"annotations,omitzero"` // of an output_text never nil: clients expect the lists
	Logprobs    []any  `json:"logprobs,omitzero"`
}

func outputText(text string) outputPart {
	return outputPart{Type: "output_text", Text: text, Annotations: []any{}, Logprobs: []any{}}
}

// callItem returns a call of a tool as an item. Its id names the message that has the call.
func callItem(run core.RunID, of core.MessageID, call core.ToolCall) outputItem {
	return outputItem{
		ID: functionPrefix + string(of) + "_" + call.ID, Type: "function_call", Status: "completed",
		CallID: callID(run, call.ID), Name: call.Name, Arguments: &call.Arguments,
	}
}

// itemsOf returns a stored message as items of a conversation. Calls and results of the server's
// tools are items, too: a conversation shows what is there.
func itemsOf(m core.Message) []outputItem {
	status := "completed"
	if m.Status == core.MessagePartial {
		status = "incomplete"
	}
	if m.Role == core.RoleTool {
		return []outputItem{{ID: messagePrefix + string(m.ID), Type: "function_call_output", Status: status, CallID: callID(m.RunID, m.ToolCallID), Output: &m.Content}}
	}
	part := outputPart{Type: "input_text", Text: m.Content}
	if m.Role == core.RoleAssistant {
		part = outputText(m.Content)
	}
	var items []outputItem
	if m.Content != "" || len(m.ToolCalls) == 0 {
		items = append(items, outputItem{ID: messagePrefix + string(m.ID), Type: "message", Status: status, Role: string(m.Role), Content: []outputPart{part}})
	}
	for _, call := range m.ToolCalls {
		items = append(items, callItem(m.RunID, m.ID, call))
	}
	return items
}

// parseItemID returns the message that an item is of.
func parseItemID(item string) (core.MessageID, error) {
	if of, isCall := strings.CutPrefix(item, functionPrefix); isCall {
		of, _, _ = strings.Cut(of, "_")
		item = messagePrefix + of
	}
	return parseID[core.MessageID](messagePrefix, item, "item")
}

// parseID returns the id of Bobbin in an id of this API.
func parseID[T ~string](prefix, outer, what string) (T, error) {
	id, ok := strings.CutPrefix(outer, prefix)
	if !ok || !core.ValidID(T(id)) {
		return "", core.Errorf(core.ErrNotFound, "the %s %s does not exist", what, quoteShort(outer))
	}
	return T(id), nil
}

// referenceStep is how many of the messages that references name are loaded at a time.
const referenceStep = 20

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
			return "", core.OneFault(fmt.Sprintf("input[%d].id", i), "the item %s is there twice", quoteShort(item.ID))
		}
		places[item.ID] = i
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var newest core.Message
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
		if err := handlers.HoldOf(c).Grow(read); err != nil {
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
		in.Output = &content{text: *i.Output}
	}
	return in
}
