package talk

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

// sight is what a conversation needs to say where messages are.
type sight interface {
	Where(ctx context.Context, id core.SessionID, message core.MessageID) (core.MessageWhere, error)
	Search(ctx context.Context, q core.SearchQuery) (core.SearchPage, error)
	MessageNumber(ctx context.Context, id core.SessionID, seq int64) (core.Message, error)
}

// found is how many messages with the words are told of.
const found = 3

// why says where a message is in the next prompt: one with its #number or id, or the
// newest with the words.
func (c *Conversation) why(ctx context.Context, about string) error {
	switch {
	case about == "":
		return core.Errorf(core.ErrInvalid, "which message? write /why with words of it, or with its number: /why #12")
	case c.Session.ID == "":
		return errNothingSaid
	}
	if core.ValidID(about) {
		return c.tell(ctx, core.MessageID(about), "")
	}
	if seq, err := strconv.ParseInt(strings.TrimPrefix(about, "#"), 10, 64); err == nil && seq > 0 {
		m, err := c.Service.MessageNumber(ctx, c.Session.ID, seq)
		if err != nil {
			return err
		}
		return c.tell(ctx, m.ID, m.Content)
	}
	page, err := c.Service.Search(ctx, core.SearchQuery{
		Text: about, SessionID: c.Session.ID, AllBranches: true, PageQuery: core.PageQuery{Limit: found},
	})
	if err != nil {
		return err
	}
	if len(page.Items) == 0 {
		return core.Errorf(core.ErrNotFound, "no message of this conversation has all of these words; fewer words find more, and begin* stands for all that begin so")
	}
	for _, hit := range page.Items {
		if err := c.tell(ctx, hit.MessageID, term.Found(hit)); err != nil {
			return err
		}
	}
	if page.NextCursor != nil {
		c.say("", fmt.Sprintf("there are more; these are the newest %d", len(page.Items)))
	}
	return nil
}

// tell says where one message is.
func (c *Conversation) tell(ctx context.Context, id core.MessageID, words string) error {
	where, err := c.Service.Where(ctx, c.Session.ID, id)
	if err != nil {
		return err
	}
	width, _ := c.Size()
	term.DrawWhere(c.Out, where, words, width)
	return nil
}
