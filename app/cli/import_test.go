package cli_test

import (
	"archive/zip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// chatGPT is an export of ChatGPT: a conversation with a branch, a tool, thoughts, an image and a hidden message;
// one whose current node and root were deleted; one without messages; one with a node missing; one with a node and all times missing; one with a cycle.
const chatGPT = `[
{"title": "Trip", "current_node": "h", "mapping": {
  "root": {"message": null, "parent": null},
  "a": {"parent": "root", "message": {"author": {"role": "system"}, "content": {"content_type": "text", "parts": [""]}, "metadata": {"is_visually_hidden_from_conversation": true}}},
  "b": {"parent": "a", "message": {"author": {"role": "user"}, "create_time": 1700000000.25, "content": {"content_type": "text", "parts": ["Where is my dentist?"]}}},
  "x": {"parent": "b", "message": {"author": {"role": "assistant"}, "content": {"content_type": "text", "parts": ["Another branch."]}}},
  "c": {"parent": "b", "message": {"author": {"role": "assistant"}, "content": {"content_type": "thoughts", "thoughts": [{"content": "Look it up."}]}}},
  "d": {"parent": "c", "message": {"author": {"role": "assistant"}, "recipient": "python", "content": {"content_type": "code", "text": "print(1 < 2)"}}},
  "e": {"parent": "d", "message": {"author": {"role": "tool", "name": "python"}, "content": {"content_type": "execution_output", "text": "True"}}},
  "f": {"parent": "e", "message": {"author": {"role": "assistant"}, "recipient": "all", "metadata": {"model_slug": "gpt-4o"}, "content": {"content_type": "text", "parts": ["In Tampere."]}}},
  "g": {"parent": "f", "message": {"author": {"role": "user"}, "content": {"content_type": "multimodal_text", "parts": [{"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1"}, "What is this?"]},
    "metadata": {"attachments": [{"id": "file-1", "name": "cat.png"}, {"id": "file-2", "name": "contract.pdf"}]}}},
  "h": {"parent": "g", "message": {"author": {"role": "assistant"}, "content": {"content_type": "text", "parts": ["A cat."], "text": 7}}}}},
{"title": null, "current_node": "gone", "mapping": {
  "b": {"parent": "deleted", "message": {"author": {"role": "user"}, "create_time": 1, "content": {"parts": ["hello"]}}},
  "c": {"parent": "b", "message": {"author": {"role": "assistant"}, "create_time": 2, "content": {"parts": ["hi"]}}}}},
{"title": "Nothing", "current_node": "root", "mapping": {"root": {"message": null, "parent": null}}},
{"title": "Torn", "current_node": "d", "mapping": {
  "a": {"parent": null, "message": {"author": {"role": "user"}, "create_time": 1, "content": {"parts": ["one"]}}},
  "b": {"parent": "a", "message": {"author": {"role": "assistant"}, "create_time": 2, "content": {"parts": ["two"]}}},
  "c": {"parent": "gone", "message": {"author": {"role": "assistant"}, "create_time": 3, "content": {"parts": ["three"]}}},
  "d": {"parent": "gone too", "message": {"author": {"role": "user"}, "create_time": 4, "content": {"parts": ["four"]}}},
  "e": {"parent": "d", "message": {"author": {"role": "assistant"}, "create_time": 5, "content": {"parts": ["another branch"]}}}}},
{"title": "No times", "current_node": "d", "mapping": {
  "root": {"message": null, "parent": null},
  "z": {"parent": "root", "message": {"author": {"role": "user"}, "content": {"parts": [""]}, "metadata": {"attachments": [{"id": "file-3", "name": "only.pdf"}]}}},
  "b": {"parent": "z", "message": {"author": {"role": "assistant"}, "content": {"parts": ["read"]}}},
  "d": {"parent": "gone", "message": {"author": {"role": "user"}, "content": {"parts": ["and then?"]}}},
  "e": {"parent": "d", "message": {"author": {"role": "assistant"}, "content": {"parts": ["another branch"]}}},
  "f": {"parent": "e", "message": {"author": {"role": "user"}, "content": {"parts": ["of three"]}}},
  "g": {"parent": "f", "message": {"author": {"role": "assistant"}, "content": {"parts": ["messages"]}}}}},
{"title": "Cycle", "current_node": "b", "mapping": {
  "b": {"parent": "c", "message": {"author": {"role": "user"}, "content": {"parts": ["to"]}}},
  "c": {"parent": "b", "message": {"author": {"role": "assistant"}, "content": {"parts": ["fro"]}}}}}
]`

// TestImportConversations imports files of several conversations, each into a session of its own.
func TestImportConversations(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	archive := filepath.Join(dir, "export.zip")
	f := must.Get(os.Create(archive))(t)
	z := zip.NewWriter(f)
	for name, text := range map[string]string{"user.json": "{}", "conversations.json": chatGPT} {
		w := must.Get(z.Create(name))(t)
		must.Get(w.Write([]byte(text)))(t)
	}
	must.Do(t, z.Close())
	must.Do(t, f.Close())
	thoughts := `{"author":{"role":"assistant"},"content":{"thoughts":[` + strings.Repeat(`{"content":"Hm."},`, 99) + `{"content":"So."}]}}`
	deep := `[{"current_node":"c","mapping":{"a":{"message":{"author":{"role":"user"},"content":{"parts":["q"]}}},"b":{"parent":"a","message":` + thoughts + `},"c":{"parent":"b","message":` + thoughts + `}}}]`
	line := `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}`
	for _, tt := range []struct {
		name, input, args string
		code              int
		out, errs         string
	}{
		{"export of ChatGPT", chatGPT, "import -", 0, "imported 5 conversations: 14 messages", "1 conversations have no messages and were skipped"},
		{"other branches of ChatGPT", chatGPT, "import -", 0, "5 messages were skipped: they belong to other branches", ""},
		{"many thoughts", deep, "import -", 0, "imported 1 conversations: 2 messages", ""},
		{"many conversations", strings.Repeat(line+"\n", 101), "import -", 0, "imported 101 conversations", "imported 100 conversations, 98 % of the file\n"},
		{"archive of ChatGPT", "", "import " + archive, 0, "3 pieces that are no text, such as images, were left out", ""},
		{"lines for fine-tuning", line + "\n" + line + "\n", "import -", 0, "imported 2 conversations: 4 messages", ""},
		{"one conversation", line, "import -", 0, "imported 2 messages", ""},
		{"into one session", chatGPT, "import - --title x", 1, "", "import it without --session and --title"},
		{"one that is none", `[{"mapping": {}}, {"x": 1}, ` + line + `]`, "import -", 1, "imported 1 conversations: 2 messages", `"conversation 2": has neither messages nor a mapping`},
		{"one that is refused", line + `{"messages":[{"role":"x"}]}` + line, "import -", 1, "imported 2 conversations: 4 messages", `role "x" must be`},
		{"cut off", chatGPT[:len(chatGPT)-40], "import - --json", 1, `"imported": 4`, "conversation 6, at byte"},
		{"another archive", "PK\x03\x04 and so on", "import -", 1, "", "the archive cannot be read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, out, errs := run(t, tt.input, append(strings.Fields(tt.args), folder(t)...)...)
			compare.True(t, code == tt.code && strings.Contains(out, tt.out) && strings.Contains(errs, tt.errs), "got %d, %q, %q; want %d, %q, %q", code, out, errs, tt.code, tt.out, tt.errs)
		})
	}
}

// TestImportChatGPT: the current path, with what belongs to an answer in one message.
func TestImportChatGPT(t *testing.T) {
	t.Parallel()
	flags := folder(t)
	call(t, flags, 0, chatGPT, "import", "-")
	_, list, _ := run(t, "", append([]string{"sessions", "list"}, flags...)...)
	for title, wants := range map[string][]string{
		"Trip": {
			`"content":"Where is my dentist?"`, `"created_at":"2023-11-14T22:13:20.25Z"`,
			`"content":"[call of python]\nprint(1 < 2)\n\n[result of python]\nTrue\n\nIn Tampere."`, `"text":"Look it up."`, `"model":"gpt-4o"`,
			`"content":"[image_asset_pointer: not imported]\nWhat is this?\n[contract.pdf: not imported]"`, `"content":"A cat."`,
		},
		"Torn":     {`"content":"one"`, `"content":"two\n\nthree"`, `"content":"four"`},
		"No times": {`"content":"[only.pdf: not imported]"`, `"content":"read"`, `"content":"and then?"`},
	} {
		var id string
		for line := range strings.Lines(list) {
			if strings.Contains(line, title) {
				id = strings.Fields(line)[0]
			}
		}
		_, out, _ := run(t, "", append([]string{"sessions", "export", id}, flags...)...)
		for _, want := range wants {
			compare.Contains(t, title, want, out)
		}
	}
	call(t, flags, 1, `[{"title": "Odd", "messages": [{"role": "user", "content": "q"}, {"role": "x"}]}]`, "import", "-")
	_, list, _ = run(t, "", append([]string{"api", "listSessions", "archived=true"}, flags...)...)
	compare.Contains(t, "what is left of a broken import", "not imported: Odd", list)
}
