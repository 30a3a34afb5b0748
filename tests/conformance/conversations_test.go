package conformance_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/api/ops"
	apiclient "bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

func conversations(t *testing.T, c *conversation) {
	type conversationObject struct {
		ID       string
		Metadata map[string]string
		Deleted  bool
	}
	made := decode[conversationObject](t, c.do(t, c.newCall("conversations.create", object{"metadata": object{"topic": "looms"}})).result)
	wantEqual(t, "metadata", made.Metadata["topic"], "looms")
	q := c.question("hello")
	wantEqual(t, "text", c.respond(t, q, object{"conversation": made.ID}).text(), "answer to: "+q)
	wantEqual(t, "conversation as an object", c.respond(t, q, object{"conversation": object{"id": made.ID}}).Conversation.ID, made.ID)
	changed := decode[conversationObject](t, c.do(t, c.newCall("conversations.update", object{"metadata": object{"topic": "threads"}}, made.ID)).result)
	wantEqual(t, "metadata", changed.Metadata["topic"], "threads")
	got := decode[conversationObject](t, c.do(t, c.newCall("conversations.retrieve", nil, made.ID)).result)
	wantEqual(t, "metadata", got.Metadata["topic"], "threads")
	if gone := decode[conversationObject](t, c.do(t, c.newCall("conversations.delete", nil, made.ID)).result); !gone.Deleted {
		t.Errorf("got %+v, want a deleted conversation", gone)
	}
	for name, later := range map[string]call{
		"the conversation": c.newCall("conversations.retrieve", nil, made.ID), "its items": c.newCall("conversations.items.list", nil, made.ID),
		"a response": c.newResponse("create", q, object{"conversation": made.ID}), "deleting it again": c.newCall("conversations.delete", nil, made.ID),
	} {
		wantEqual(t, name+" after its deletion", c.fail(t, later).Status, http.StatusNotFound)
	}
}

func conversationItems(t *testing.T, c *conversation) {
	one, two := c.question("one"), c.question("two")
	made := decode[struct{ ID string }](t, c.do(t, c.newCall("conversations.create", object{"items": []any{user(one), assistant("uno")}})).result)
	c.do(t, c.newCall("conversations.items.create", object{"items": []any{user(two), assistant("due")}}, made.ID))
	for range 5 {
		c.respond(t, c.question("three"), object{"conversation": made.ID})
	}
	list := c.newCall("conversations.items.list", object{"limit": 3, "order": "asc"}, made.ID)
	list.All = true
	items := decode[[]item](t, c.do(t, list).result)
	if len(items) != 14 || items[0].text() != one || items[1].text() != "uno" || items[2].text() != two || items[13].Role != "assistant" {
		t.Fatalf("got the items %+v, want 14, the oldest first", items)
	}
	list.Params["order"] = "desc"
	if back := decode[[]item](t, c.do(t, list).result); len(back) != 14 || back[0].ID != items[13].ID || back[13].ID != items[0].ID {
		t.Errorf("got %d items, want the same the other way round", len(back))
	}
	byID := object{"conversation_id": made.ID}
	got := decode[item](t, c.do(t, c.newCall("conversations.items.retrieve", byID, items[2].ID)).result)
	wantEqual(t, "text of one item", got.text(), two)
	c.do(t, c.newCall("conversations.items.delete", byID, items[2].ID))
	if after := decode[[]item](t, c.do(t, list).result); len(after) > 0 && strings.Contains(after[11].text(), two) {
		t.Errorf("got %+v, want the text gone", after[11])
	}
}

// conversationPages reads the items of tools page by page: several are of one message.
func conversationPages(t *testing.T, c *conversation) {
	c.model = "helper"
	c.respond(t, c.question("use a tool"), nil)
	id := "conv_" + string(c.session())
	calls := c.respond(t, c.question("the weather of both"), object{"conversation": id, "tools": responseWeather()})
	list := c.newCall("conversations.items.list", object{"limit": 100, "order": "asc"}, id)
	list.All = true
	want := decode[[]item](t, c.do(t, list).result)
	var types []string
	for _, i := range want {
		types = append(types, i.Type)
	}
	wantEqual(t, "items", strings.Join(types, " "), "message function_call function_call_output message message function_call function_call")
	wantEqual(t, "id of a call in its response", calls.Output[len(calls.Output)-1].ID, want[len(want)-1].ID)
	for _, order := range []string{"asc", "desc"} {
		for _, limit := range []int{1, 2} {
			list.Params = object{"limit": limit, "order": order}
			compare.Equal(t, fmt.Sprintf("%s, limit %d:", order, limit), want, decode[[]item](t, c.do(t, list).result))
			first := list
			first.All = false
			page := decode[struct{ Data []item }](t, c.do(t, first).result)
			wantEqual(t, "items of a page", len(page.Data), limit)
		}
		slices.Reverse(want)
	}
	byID := object{"conversation_id": id}
	for _, i := range want {
		got := decode[item](t, c.do(t, c.newCall("conversations.items.retrieve", byID, i.ID)).result)
		wantEqual(t, "item by its id", got.ID, i.ID)
	}
	wantEqual(t, "unknown call", c.fail(t, c.newCall("conversations.items.retrieve", byID, want[1].ID+"x")).Status, http.StatusNotFound)
	c.do(t, c.newCall("responses.cancel", nil, calls.ID)) // a session with a run cannot be changed
	c.do(t, c.newCall("conversations.items.delete", byID, want[1].ID))
	wantEqual(t, "item that was deleted", c.fail(t, c.newCall("conversations.items.retrieve", byID, want[1].ID)).Status, http.StatusNotFound)
}

// conversationKeys adds calls and results of the client's own tools, each request twice with one key: what
// it adds is there once. A request that is refused leaves nothing.
func conversationKeys(t *testing.T, c *conversation) {
	q := c.question("what is the answer?")
	items := func(call string) object {
		return object{"metadata": object{"topic": "looms"}, "items": []any{
			user(q), object{"type": "function_call", "call_id": call, "name": "look_up", "arguments": `{"a":1}`},
			object{"type": "function_call_output", "call_id": call, "output": "42"}, assistant("It is 42."),
		}}
	}
	once := func(made call) (first outcome) {
		made.Headers["Idempotency-Key"] = "key of " + c.mark + made.Method
		first = c.do(t, made)
		wantEqual(t, made.Method+" again", string(c.do(t, made).result), string(first.result))
		made.Params = object{"items": []any{user("another")}}
		wantEqual(t, made.Method+" with another body", c.fail(t, made).Code, "idempotency_key_reused")
		return first
	}
	id := decode[struct{ ID string }](t, once(c.newCall("conversations.create", items("c1"))).result).ID
	adding := items("c2")
	delete(adding, "metadata")
	added := decode[struct{ Data []item }](t, once(c.newCall("conversations.items.create", adding, id)).result).Data
	list := c.newCall("conversations.items.list", object{"order": "asc"}, id)
	list.All = true
	all := decode[[]item](t, c.do(t, list).result)
	if diff := cmp.Diff(all[min(4, len(all)):], added); diff != "" || len(all) != 8 {
		t.Fatalf("got %d items, want 8, of which the last 4 were added: %s", len(all), diff)
	}
	wantEqual(t, "the call", added[1].CallID+added[1].Name+added[1].Arguments, `c2look_up{"a":1}`)
	wantEqual(t, "its result", added[2].CallID+added[2].Output, "c242")
	next := c.question("and now?")
	wantEqual(t, "text behind them", c.respond(t, next, object{"conversation": id}).text(), "answer to: "+next)

	orphan := []any{object{"type": "function_call_output", "call_id": "c3", "output": "43"}}
	c.fail(t, c.newCall("conversations.items.create", object{"items": orphan}, id))
	c.fail(t, c.newCall("conversations.create", object{"items": orphan, "metadata": object{"user_id": c.mark}}))
	left := must.Get(apiclient.Call(t.Context(), c, ops.ListSessions, core.SessionQuery{UserID: c.mark}))(t)
	wantEqual(t, "sessions of refused conversations", len(left.Items), 0)
}
