package chat

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

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
		m, err := c.Service.MessageNumber(ctx, c.Session.ID, seq)
		if err != nil {
			return err
		}
		return c.showPlacement(ctx, m.ID, m.Content)
	}
	page, err := c.Service.Search(ctx, core.SearchQuery{
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

// showPlacement shows where one message is.
func (c *Conversation) showPlacement(ctx context.Context, id core.MessageID, words string) error {
	where, err := c.Service.Where(ctx, c.Session.ID, id)
	if err != nil {
		return err
	}
	width, _ := c.Size()
	term.DrawWhere(c.Out, where, words, width)
	return nil
}
