package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// Instructions among the items of a conversation, under both names of their role, are kept, and in none of its prompts.
// Items that are all left out are none.
func TestInstructionsOfConversations(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{Record: true})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 16_000, 1_024, p), apptest.WithAgent("plain", "name: plain\nmodel: house\nsystem_prompt: You answer.\n"))
	made := postForeign(t, h, "conversations", `{"items":[{"role":"developer","content":"ALWAYS FRENCH"},{"role":"user","content":"I am Ann"}]}`)
	const added = `{"items":[{"type":"message","role":"system","content":"NEVER RUDE"}]}`
	for range 2 {
		if a := postForeign(t, h, "conversations/"+made.ID+"/items", added, "Idempotency-Key", "k"); a.status != http.StatusOK || strings.Count(a.text, "NEVER RUDE") != 1 {
			t.Errorf("got %d %s, want the item", a.status, a.text)
		}
	}
	if a := postForeign(t, h, "conversations/"+made.ID+"/items", `{"items":[{"type":"reasoning","summary":[]}]}`); a.status != http.StatusOK || !strings.Contains(a.text, `"data":[]`) {
		t.Errorf("got %d %s, want no items", a.status, a.text)
	}
	for range 2 {
		postForeign(t, h, "responses", fmt.Sprintf(`{"model":"plain","conversation":%q,"input":"who am I?"}`, made.ID))
	}
	for _, r := range p.Received() {
		system := strings.Join(r.System, " ")
		compare.Equal(t, "instructions in the prompt", "0 0", fmt.Sprint(strings.Count(system, "ALWAYS FRENCH"), " ", strings.Count(system, "NEVER RUDE")))
	}
	compare.Equal(t, "prompts", 2, len(p.Received()))
}

// A result of a tool of the client may be a list of texts and images, in both dialects. The model reads the texts, and
// that there was an image.
func TestResultsInParts(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{Record: true, Calls: provider.CallNamed})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 16_000, 1_024, p), apptest.WithAgent("plain", "name: plain\nmodel: house\n"))
	for path, result := range map[string]string{
		"chat/completions": `[{"type":"text","text":"a chart"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]`,
		"responses":        `[{"type":"input_text","text":"a chart"},{"type":"input_image","image_url":"data:image/png;base64,AA=="}]`,
	} {
		u := toolUser{t: t, h: h, path: path}
		u.send("", []string{"lookup"}, `{"role":"user","content":"call lookup {}"}`)
		a := u.send("", []string{"lookup"}, strings.Replace(u.results()[0], `"sunny"`, result, 1))
		all := p.Received()
		if body := string(all[len(all)-1].Body); a.status != http.StatusOK || !strings.Contains(body, `a chart\n[an image or a file`) {
			t.Errorf("%s: got %d %s from the prompt %s", path, a.status, a.text, body)
		}
	}
}

// An error of a content says where it is.
func TestFaultsOfContents(t *testing.T) {
	t.Parallel()
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 16_000, 1_024, apptest.NewProvider(t, provider.Options{})), apptest.WithAgent("plain", "name: plain\nmodel: house\n"))
	for body, says := range map[string]string{
		`{"messages":[{"role":"system","content":"x"},{"role":"user","content":{"type":"text"}}]}`:   "messages[1].content must be a text or a list of parts",
		`{"messages":[{"role":"user","content":["plain"]},{"role":"user","content":"x"}]}`:           "messages[0].content must be a text or a list of parts",
		`{"messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"video"}]}]}`:     "messages[0].content[1] the type",
		`{"input":[{"role":"user","content":[{"type":"input_image","image_url":"http://x"}]}]}`:      "input[0].content[0] image_url must be a data: URL",
		`{"input":[{"type":"function_call_output","call_id":"c","output":{"a":1}}]}`:                 "input[0].output must be a text or a list of parts",
		`{"input":[{"type":"function_call_output","call_id":"c","output":[{"type":"input_file"}]}]}`: "input[0].output[0] file needs file_id or file_data",
	} {
		path := "responses"
		if strings.HasPrefix(body, `{"messages"`) {
			path = "chat/completions"
		}
		if a := postForeign(t, h, path, strings.Replace(body, "{", `{"model":"plain",`, 1)); a.status != http.StatusBadRequest || !strings.Contains(a.Error.Message, says) {
			t.Errorf("%s: got %d %s, want %q", body, a.status, a.text, says)
		}
	}
}
