package chat

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/cli/term"
	"bobbin/app/client"
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
		{"/context", "", "show what the next prompt consists of, and how close a summary is", func(c *Conversation, ctx context.Context, _ string) error {
			if err := c.ensureSession(ctx); err != nil {
				return err
			}
			report, err := client.Call(ctx, c.Service, ops.GetContext, c.inSession())
			if err == nil {
				width, _ := c.Size()
				term.DrawContext(c.Out, report, time.Now(), width)
			}
			return err
		}},
		{"/why", "<words or #seq>", "show where a message is in the next prompt, and why", (*Conversation).explainPlacement},
		{"/summary", "[n, list, diff, restore n]", "show the active summary, another version, all versions, or changes", (*Conversation).handleSummary},
		{"/summarize", "[focus]", "summarize older messages now; focus says what matters most", (*Conversation).summarizeNow},
		{"/undo", "", "undo the last summary", func(c *Conversation, ctx context.Context, _ string) error { return c.undoSummary(ctx) }},
		{"/retry", "", "regenerate the last answer; the old one is kept as a branch", func(c *Conversation, ctx context.Context, _ string) error {
			if c.Session.ID == "" {
				return errNothingSaid
			}
			if c.lastAnswer == "" { // given before this conversation was opened
				session, err := client.Call(ctx, c.Service, ops.GetSession, c.inSession())
				if err != nil {
					return err
				}
				if session.MessageCount == 0 {
					return errNothingSaid
				}
				m, err := c.findMessage(ctx, int64(session.MessageCount))
				if err != nil {
					return err
				}
				c.lastAnswer = m.ID
			}
			return c.showRun(ctx, ops.RegenerateMessage.Operation, core.Regenerate{SessionID: c.Session.ID, MessageID: c.lastAnswer, Model: c.Model, Source: core.SourceCLI})
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
				line := fmt.Sprintf("  %-36s %s", strings.TrimSpace(h.name+" "+h.args), h.what)
				fmt.Fprintln(c.Out, term.Wrap(line, width, "    "))
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
	// Neither /usr/bin is meant as a command, nor the first word of pasted text with several lines.
	if len(word) < 2 || word[0] != '/' || strings.ContainsAny(word[1:], "/\n") {
		return c.Ask(ctx, text)
	}
	return core.Errorf(core.ErrInvalid, "unknown command %s; %s", word, core.Suggest(word, names, "", "/help lists all commands"))
}

// maxExplained is the maximum number of matching messages that /why explains.
const maxExplained = 3

// explainPlacement shows where messages are in the next prompt: one with a #number or id, or
// the newest that contain the words.
func (c *Conversation) explainPlacement(ctx context.Context, about string) error {
	switch {
	case about == "":
		return core.Errorf(core.ErrInvalid, "which message? use /why with words from it, or with its number: /why #12")
	case c.Session.ID == "":
		return errNothingSaid
	}
	if core.ValidID(about) {
		return c.showPlacement(ctx, core.MessageID(about), "")
	}
	if seq, err := strconv.ParseInt(strings.TrimPrefix(about, "#"), 10, 64); err == nil && seq > 0 {
		m, err := c.findMessage(ctx, seq)
		if err != nil {
			return err
		}
		return c.showPlacement(ctx, m.ID, m.Content)
	}
	page, err := client.Call(ctx, c.Service, ops.Search, core.SearchQuery{
		Text: about, SessionID: c.Session.ID, AllBranches: true, Sort: core.SortNewest, PageQuery: core.PageQuery{Limit: maxExplained},
	})
	if err != nil {
		return err
	}
	if len(page.Items) == 0 {
		return core.Errorf(core.ErrNotFound, "no message of this conversation contains all these words; try fewer words, or the beginning of one: begin*")
	}
	for _, hit := range page.Items {
		if err := c.showPlacement(ctx, hit.MessageID, term.HighlightedText(hit)); err != nil {
			return err
		}
	}
	if page.NextCursor != nil {
		c.printNotice("", fmt.Sprintf("there are more; these are the %d newest", len(page.Items)))
	}
	return nil
}

// findMessage returns the message with the seq, on any branch.
func (c *Conversation) findMessage(ctx context.Context, seq int64) (core.Message, error) {
	page, err := client.Call(ctx, c.Service, ops.ListMessages, ops.MessageList{
		InSession: c.inSession(), MessageQuery: core.MessageQuery{After: seq - 1, AllBranches: true, PageQuery: core.PageQuery{Limit: 1}},
	})
	if err == nil && (len(page.Items) == 0 || page.Items[0].Seq != seq) {
		err = core.Errorf(core.ErrNotFound, "message #%d does not exist or was deleted", seq)
	}
	if err != nil {
		return core.Message{}, err
	}
	return page.Items[0], nil
}

// showPlacement shows where one message is.
func (c *Conversation) showPlacement(ctx context.Context, id core.MessageID, words string) error {
	where, err := client.Call(ctx, c.Service, ops.WhereIsMessage, ops.InMessage{InSession: c.inSession(), MessageID: id})
	if err != nil {
		return err
	}
	width, _ := c.Size()
	term.DrawWhere(c.Out, where, words, width)
	return nil
}

// showOrSetModel shows which model answers and which others may, or changes it.
func (c *Conversation) showOrSetModel(ctx context.Context, name string) error {
	agents, err := client.Call(ctx, c.Service, ops.ListAgents, struct{}{})
	if err != nil {
		return err
	}
	var names []string
	current := cmp.Or(c.Model, c.Session.Model)
	for _, a := range agents.Items {
		if a.Name != cmp.Or(c.Session.Agent, a.Name) {
			continue
		}
		for _, m := range a.Models {
			if !slices.Contains(names, m.Name) {
				names = append(names, m.Name)
			}
			if m.Default && c.Session.Agent != "" {
				current = cmp.Or(current, m.Name)
			}
		}
	}
	if name == "" {
		c.printNotice("· ", "this chat uses "+cmp.Or(current, "the agent's model")+"; /model <name> changes it: "+strings.Join(names, ", "))
		return nil
	}
	if !slices.Contains(names, name) {
		return core.Errorf(core.ErrInvalid, "%q cannot be used; the models are %s", name, strings.Join(names, ", "))
	}
	c.Model = name
	c.printNotice("· ", "this chat now uses "+name)
	return nil
}

// maxFound is the maximum number of messages that a search shows.
const maxFound = 10

// searchMessages searches the messages of all conversations.
func (c *Conversation) searchMessages(ctx context.Context, words string) error {
	if words == "" {
		return core.Errorf(core.ErrInvalid, "no search words given: /search <words>")
	}
	page, err := client.Call(ctx, c.Service, ops.Search, core.SearchQuery{Text: words, PageQuery: core.PageQuery{Limit: maxFound}})
	if err != nil {
		return err
	}
	if len(page.Items) == 0 {
		c.printNotice("· ", "nothing found; words match whole, or by their beginning with a star: pump*")
		return nil
	}
	width, _ := c.Size()
	for _, h := range page.Items {
		term.DrawHit(c.Out, h, time.Local, width)
	}
	return nil
}

// maxAttached is the maximum size of a file, in bytes; the server accepts less.
const maxAttached = 256 << 20

// attachFile uploads a file for the next message; without a path it lists the attached files.
func (c *Conversation) attachFile(ctx context.Context, path string) error {
	if path == "" {
		if len(c.attached) == 0 {
			return core.Errorf(core.ErrInvalid, "nothing is attached; use /attach <path>")
		}
		for _, p := range c.attached {
			c.printNotice("· ", "attached to the next message: "+p.Describe())
		}
		return nil
	}
	path = strings.Trim(path, `"'`)
	data, err := readFile(path)
	if err != nil {
		return err
	}
	blob, err := c.Service.UploadBlob(ctx, core.Upload{SessionID: c.Session.ID, Name: filepath.Base(path), Data: data})
	if err != nil {
		return err
	}
	part := blob.Part()
	part.Name = filepath.Base(path)
	c.attached = append(c.attached, part)
	c.printNotice("· ", "attached to the next message: "+part.Describe())
	return nil
}

// readFile reads a file whose name the user typed; ~ is the home directory. Errors are
// sentences.
func readFile(path string) ([]byte, error) {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			path = filepath.Join(home, rest)
		}
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, core.Errorf(core.ErrInvalid, "%v", err)
	case !info.Mode().IsRegular():
		return nil, core.Errorf(core.ErrInvalid, "%s is not a file", path)
	case info.Size() > maxAttached:
		return nil, core.Errorf(core.ErrTooLarge, "%s is too large: %s", path, core.ByteSize(info.Size()))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, core.Errorf(core.ErrInvalid, "%v", err)
	}
	return data, nil
}
