package chat

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

// slashCommand is a command that begins with a slash.
type slashCommand struct {
	name string
	args string // as the help shows them
	what string
	do   func(c *Conversation, ctx context.Context, rest string) error // nil = Run itself does it
}

func slashCommands() []slashCommand {
	return []slashCommand{
		{"/context", "", "show what the next prompt consists of, and how close a summary is", func(c *Conversation, ctx context.Context, _ string) error { return c.showContext(ctx) }},
		{"/why", "<words or #seq>", "show where a message is in the next prompt, and why", (*Conversation).explainPlacement},
		{"/summary", "[n, list, diff, restore n]", "show the active summary, another version, all versions, or changes", (*Conversation).handleSummary},
		{"/summarize", "[focus]", "summarize older messages now; focus says what matters most", (*Conversation).summarizeNow},
		{"/undo", "", "undo the last summary", func(c *Conversation, ctx context.Context, _ string) error { return c.undoSummary(ctx) }},
		{"/retry", "", "regenerate the last answer; the old one is kept as a branch", func(c *Conversation, ctx context.Context, _ string) error {
			if c.Session.ID == "" {
				return errNothingSaid
			}
			if c.lastAnswer == "" { // given before this conversation was opened
				session, err := c.Service.Session(ctx, c.Session.ID)
				if err != nil {
					return err
				}
				if session.MessageCount == 0 {
					return errNothingSaid
				}
				m, err := c.Service.MessageNumber(ctx, c.Session.ID, int64(session.MessageCount))
				if err != nil {
					return err
				}
				c.lastAnswer = m.ID
			}
			return c.showRun(ctx, func(ctx context.Context) iter.Seq2[core.Event, error] {
				return c.Service.Regenerate(ctx, core.Regenerate{SessionID: c.Session.ID, MessageID: c.lastAnswer, Model: c.Model, Source: core.SourceCLI})
			})
		}},
		{"/model", "[name]", "show the models, or change that of this chat", (*Conversation).showOrSetModel},
		{"/new", "", "start a new conversation with the same agent; this one is kept", func(c *Conversation, _ context.Context, _ string) error {
			if c.Session.ID != "" {
				c.printNotice("· ", fmt.Sprintf("new conversation; the previous one was %s", c.Session.ID))
			}
			c.Session = core.Session{Agent: c.Session.Agent, Source: core.SourceCLI}
			c.attached, c.lastAnswer = nil, ""
			return nil
		}},
		{"/search", "<words>", "search the messages of all conversations", (*Conversation).searchMessages},
		{"/attach", "<path>", "send an image or a file with the next message", (*Conversation).attachFile},
		{"/help", "", "show this list", func(c *Conversation, _ context.Context, _ string) error {
			width, _ := c.Size()
			list := append(slashCommands(), slashCommand{name: "Ctrl-C", what: "stop the current answer; the partial answer is kept"})
			for _, h := range list {
				name := strings.TrimSpace(h.name + " " + h.args)
				if width > 0 && width < 110 {
					fmt.Fprintln(c.Out, term.Wrap("  "+name, width, "    "))
					fmt.Fprintln(c.Out, term.Wrap("    "+h.what, width, "    "))
					continue
				}
				fmt.Fprintf(c.Out, "  %-36s %s\n", name, h.what)
			}
			return nil
		}},
		{"/quit", "", "quit (also Ctrl-D); the conversation is kept", nil},
	}
}

// handleLine runs a slash command, or sends the line as a message.
func (c *Conversation) handleLine(ctx context.Context, text string) error {
	word, rest, _ := strings.Cut(text, " ")
	if text == "" {
		return nil
	}
	var names []string
	for _, known := range slashCommands() {
		if known.name == word && known.do != nil {
			return c.runInterruptible(ctx, func(ctx context.Context) error { return known.do(c, ctx, strings.TrimSpace(rest)) })
		}
		names = append(names, known.name)
	}
	if !isCommand(word) {
		return c.sendMessage(ctx, text)
	}
	if near := core.Nearest(word, names); near != "" {
		return core.Errorf(core.ErrInvalid, "unknown command %s; did you mean %s?", word, near)
	}
	return core.Errorf(core.ErrInvalid, "unknown command %s; /help lists all commands", word)
}

// isCommand reports whether a word is meant as a command: /usr/bin is not, nor is the first
// word of pasted text with several lines.
func isCommand(word string) bool {
	return len(word) > 1 && word[0] == '/' && !strings.ContainsAny(word[1:], "/\n")
}
