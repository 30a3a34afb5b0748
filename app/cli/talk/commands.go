package talk

import (
	"context"
	"fmt"
	"strings"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

// command is a word after a slash.
type command struct {
	name string
	args string // as the help shows them
	what string
	do   func(c *Conversation, ctx context.Context, rest string) error // nil = Run itself does it
}

func commands() []command {
	return []command{
		{"/context", "", "what the next prompt is made of, and how near a summary is", func(c *Conversation, ctx context.Context, _ string) error { return c.context(ctx) }},
		{"/why", "<words or #seq>", "where a message is in the next prompt, and why", (*Conversation).why},
		{"/summary", "[n, list, diff, restore n]", "the summary in use, another version, all of them, or what changed", (*Conversation).summary},
		{"/summarize", "[focus]", "summarize the older messages now; say what to keep above all", (*Conversation).summarize},
		{"/undo", "", "take the last summary back", func(c *Conversation, ctx context.Context, _ string) error { return c.undo(ctx) }},
		{"/attach", "<path>", "send an image or a file with the next message", (*Conversation).attach},
		{"/help", "", "this list", func(c *Conversation, _ context.Context, _ string) error { c.help(); return nil }},
		{"/quit", "", "leave (Ctrl-D too); the conversation is kept", nil},
	}
}

// take does what one line asks for.
func (c *Conversation) take(ctx context.Context, text string) error {
	word, rest, _ := strings.Cut(text, " ")
	if text == "" {
		return nil
	}
	var names []string
	for _, known := range commands() {
		if known.name == word && known.do != nil {
			return c.interruptible(ctx, func(ctx context.Context) error { return known.do(c, ctx, strings.TrimSpace(rest)) })
		}
		names = append(names, known.name)
	}
	if !isCommand(word) {
		return c.answer(ctx, text)
	}
	meant := ""
	if near := core.Nearest(word, names); near != "" {
		meant = ", do you mean " + near + "?"
	}
	return core.Errorf(core.ErrInvalid, "there is no command %s%s; /help lists them", word, meant)
}

// isCommand reports whether a word is meant as a command: /usr/bin is not, nor is
// a line of several that was pasted.
func isCommand(word string) bool {
	return len(word) > 1 && word[0] == '/' && !strings.ContainsAny(word[1:], "/\n")
}

// help lists the commands; what they do stands below them where it is narrow.
func (c *Conversation) help() {
	width, _ := c.Size()
	list := append(commands(), command{name: "Ctrl-C", what: "stop the answer that is coming; what was said is kept"})
	for _, h := range list {
		name := strings.TrimSpace(h.name + " " + h.args)
		if width > 0 && width < 110 {
			fmt.Fprintln(c.Out, term.Wrap("  "+name, width, "    "))
			fmt.Fprintln(c.Out, term.Wrap("    "+h.what, width, "    "))
			continue
		}
		fmt.Fprintf(c.Out, "  %-36s %s\n", name, h.what)
	}
}
