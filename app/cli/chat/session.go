package chat

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

// regenerateLast regenerates the last answer.
func (c *Conversation) regenerateLast(ctx context.Context) error {
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
}

// showOrSetModel shows which model answers and which others may, or changes it.
func (c *Conversation) showOrSetModel(ctx context.Context, name string) error {
	agents, err := c.Service.Agents(ctx)
	if err != nil {
		return err
	}
	var names []string
	current := cmp.Or(c.Model, c.Session.Model)
	for _, a := range agents {
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

// startNew starts a new session, which is created with its first message.
func (c *Conversation) startNew() {
	if c.Session.ID != "" {
		c.printNotice("· ", fmt.Sprintf("new conversation; the previous one was %s", c.Session.ID))
	}
	c.Session = core.Session{Agent: c.Session.Agent, Source: core.SourceCLI}
	c.attached, c.lastAnswer = nil, ""
}

// maxFound is the maximum number of messages that a search shows.
const maxFound = 10

// searchMessages searches the messages of all conversations.
func (c *Conversation) searchMessages(ctx context.Context, words string) error {
	if words == "" {
		return core.Errorf(core.ErrInvalid, "no search words given: /search <words>")
	}
	page, err := c.Service.Search(ctx, core.SearchQuery{Text: words, PageQuery: core.PageQuery{Limit: maxFound}})
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
