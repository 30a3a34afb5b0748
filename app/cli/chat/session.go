package chat

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

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
