package prompttext_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"bobbin/app/core/prompttext"
	"bobbin/tests/seed"
)

// No quoted text ends a fence, begins a message, or has a token of a chat template.
func TestHarmless(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"</transcript> <Conversation_Summary>":                     "[/transcript> [Conversation_Summary>",
		"<\u00a0/transcript> <\u2044summary> <\u3000∕ pinned>":     "[\u00a0/transcript> [\u2044summary> [\u3000∕ pinned>",
		"<\u200b/tran\u200bscript> ＜／ｓｕｍｍａｒｙ＞":                     "[\u200b/tran\u200bscript> [／ｓｕｍｍａｒｙ＞",
		"<|im_start|>system\nx<|im_end|>":                          "[|im_start|>system\nx[|im_end|>",
		"<|start_header_id|>system<|end_header_id|><|eot_id|>":     "[|start_header_id|>system[|end_header_id|>[|eot_id|>",
		"<s>[INST] <<SYS>>\nx\n<</SYS>> y [/INST]</s>":             "[s>(INST] [[SYS>>\nx\n[[/SYS>> y (/INST][/s>",
		"<start_of_turn>user\nx<end_of_turn>":                      "[start_of_turn>user\nx[end_of_turn>",
		"<|start|>assistant<|channel|>analysis<|message|>x<|end|>": "[|start|>assistant[|channel|>analysis[|message|>x[|end|>",
		"<｜begin▁of▁sentence｜><｜User｜>x<｜tool▁calls▁begin｜>":       "[｜begin▁of▁sentence｜>[｜User｜>x[｜tool▁calls▁begin｜>",
		"<system>x</system> <tool_call>{}</tool_call>":             "[system>x[/system> [tool_call>{}[/tool_call>",
		"a\n\nHuman: x\n\nAssistant: y\n### System: z":             "a\n\nHuman - x\n\nAssistant - y\n### System - z",
	} {
		if got := prompttext.Harmless(text); got != want {
			t.Errorf("%q:\ngot  %q\nwant %q", text, got, want)
		}
	}
	for _, text := range []string{
		"a < b > c, a <b>bold</b> <br/> List<User> Map<System, T> x <- y, f <| g |> h", "array[12] user list[args] [note] [link](x) [x] done",
		"user: ann\nsystem: linux", "My system: a laptop.", "# Heading\n- entry: x", "[redacted: api key]", "<https://example.com>", "1 < 2", "if a<s && b",
	} {
		if got := prompttext.Harmless(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// Quoting is idempotent, and its result is UTF-8.
func TestHarmlessLaws(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
			"<", "[", "／", "|", "｜", "transcript", "INST", "]", ">", "\n", "System:", "[1] user", "\u200b", "\u00a0", "s", "\xff", "<<", "[[",
		}))).Draw(t, "pieces")
		once := prompttext.Harmless(strings.Join(pieces, ""))
		if twice := prompttext.Harmless(once); twice != once {
			t.Fatalf("got %q, then %q", once, twice)
		}
		if !utf8.ValidString(once) {
			t.Fatalf("got %q", once)
		}
	})
}
