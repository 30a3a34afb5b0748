package provider_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"

	"bobbin/tests/provider"
)

// response is an answer of the Responses API.
type response struct {
	Status  int `json:"-"`
	Output  []object
	Removed []provider.RemovedReasoning `json:"input_transformations"`
	Error   *struct{ Message, Param, Code string }
}

// responses sends a conversation to a strict Responses API.
type responses struct {
	t       *testing.T
	handler *provider.ResponsesHandler
	req     object
}

func newResponses(t *testing.T, strict provider.Strict) *responses {
	t.Helper()
	return &responses{t: t, handler: provider.NewResponsesHandler(strict), req: object{
		"model": "gpt-6.2-sol", "instructions": "You help.", "input": list{}, "reasoning": object{"effort": "low"},
		"tools": list{object{"type": "function", "name": "calculator", "parameters": object{"type": "object"}}},
	}}
}

func (r *responses) input() list { return r.req["input"].(list) }

func (r *responses) item(i int) object { return r.input()[i].(object) }

func (r *responses) add(items ...any) { r.req["input"] = append(r.input(), items...) }

func (r *responses) send(path string, more object) response {
	r.t.Helper()
	web := httptest.NewServer(r.handler)
	defer web.Close()
	body := maps.Clone(r.req)
	maps.Copy(body, more)
	raw, err := json.Marshal(body)
	if err != nil {
		r.t.Fatal(err)
	}
	var out response
	out.Status = post(r.t, web.URL+path, raw, "", &out)
	return out
}

// ask adds a message and the answer's items.
func (r *responses) ask(text string) {
	r.t.Helper()
	r.add(asks(text))
	got := r.send("/v1/responses", nil)
	if got.Status != http.StatusOK {
		r.t.Fatalf("got %d %+v", got.Status, got.Error)
	}
	for _, item := range got.Output {
		r.add(item)
	}
}

func asks(text string) object { return object{"role": "user", "content": text} }

// converse holds a conversation of the items message, reasoning, message; message, reasoning, call,
// result, reasoning, message; and one more message.
func (r *responses) converse() *responses {
	r.t.Helper()
	r.ask("hello")
	r.add(asks("use a tool"))
	for _, item := range r.send("/v1/responses", nil).Output {
		r.add(item)
	}
	call := r.item(len(r.input()) - 1)
	r.add(object{"type": "function_call_output", "call_id": call["call_id"], "output": "42"})
	for _, item := range r.send("/v1/responses", nil).Output {
		r.add(item)
	}
	r.add(asks("one more"))
	return r
}

func TestStrictResponses(t *testing.T) {
	t.Parallel()
	gpt5 := func(r *responses) { r.req["model"] = "gpt-5.6" }
	for name, tt := range map[string]struct {
		before, change func(r *responses)
		removed        []int // numbers of the reasoning items
		reason         string
	}{
		"none":                          {nil, func(*responses) {}, nil, ""},
		"IDs and statuses left out":     {nil, func(r *responses) { delete(r.item(2), "id"); delete(r.item(5), "status") }, nil, ""},
		"instructions":                  {nil, func(r *responses) { r.req["instructions"] = "Be short." }, nil, ""},
		"instructions before GPT-6.2":   {gpt5, func(r *responses) { r.req["instructions"] = "Be short." }, []int{0, 1, 2}, "prefix_mismatch"},
		"tools":                         {nil, func(r *responses) { r.req["tools"] = list{} }, []int{0, 1, 2}, "prefix_mismatch"},
		"effort":                        {nil, func(r *responses) { r.req["reasoning"] = object{"effort": "high"} }, []int{0, 1, 2}, "prefix_mismatch"},
		"format":                        {nil, func(r *responses) { r.req["text"] = object{"format": object{"type": "json_object"}} }, []int{0, 1, 2}, "prefix_mismatch"},
		"answer changed":                {nil, func(r *responses) { r.item(2)["content"] = "hi" }, []int{1, 2}, "prefix_mismatch"},
		"result of a tool shortened":    {nil, func(r *responses) { r.item(6)["output"] = "4" }, []int{2}, "prefix_mismatch"},
		"reasoning left out":            {nil, func(r *responses) { r.req["input"] = append(r.input()[:4:4], r.input()[5:]...) }, []int{2}, "prefix_mismatch"},
		"summary before the last turns": {nil, func(r *responses) { r.req["input"] = append(list{asks("a summary")}, r.input()[3:]...) }, []int{1, 2}, "prefix_mismatch"},
		"another model":                 {nil, func(r *responses) { r.req["model"] = "gpt-6.3" }, []int{0, 1, 2}, "model_mismatch"},
		"another account":               {nil, func(r *responses) { r.handler = provider.NewResponsesHandler(account("b")) }, []int{0, 1, 2}, "organization_mismatch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newResponses(t, account("a"))
			if tt.before != nil {
				tt.before(r)
			}
			r.converse()
			var ids []string
			for i := range r.input() {
				if r.item(i)["type"] == "reasoning" {
					ids = append(ids, r.item(i)["id"].(string))
				}
			}
			tt.change(r)
			got := r.send("/v1/responses", nil)
			wantEqual(t, "status", got.Status, http.StatusOK)
			want := []provider.RemovedReasoning{}
			for _, n := range tt.removed {
				want = append(want, provider.RemovedReasoning{ID: ids[n], Type: "reasoning", Action: "removed", Reason: tt.reason})
			}
			wantEqual(t, "removed", got.Removed, want)
			for _, item := range got.Output { // what was thought without the removed items stays
				r.add(item)
			}
			wantEqual(t, "removed at the next request", r.send("/v1/responses", nil).Removed, want)
		})
	}
}
