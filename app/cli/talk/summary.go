package talk

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
)

// summaries is what a conversation needs of its summaries.
type summaries interface {
	Session(ctx context.Context, id core.SessionID) (core.Session, error)
	Summaries(ctx context.Context, id core.SessionID, q core.PageQuery) (core.Page[core.Summary], error)
	Summary(ctx context.Context, id core.SessionID, version int) (core.Summary, error)
	DiffSummary(ctx context.Context, id core.SessionID, version, against int) (core.SummaryDiff, error)
	RestoreSummary(ctx context.Context, id core.SessionID, version int) (core.Session, error)
	UndoSummary(ctx context.Context, id core.SessionID) (client.Undone, error)
}

// Why there is nothing to look at.
var (
	errNothingSaid = core.Errorf(core.ErrUnprocessable, "nothing has been said yet")
	errNoSummary   = core.Errorf(core.ErrUnprocessable, "nothing is summarized; /summarize does it now, /summary list shows earlier versions")
)

// summary shows the summary in use or what rest asks for: a version, all of them, what
// changed, or an earlier version put to use again.
func (c *Conversation) summary(ctx context.Context, rest string) error {
	if c.Session.ID == "" {
		return errNothingSaid
	}
	word, number, _ := strings.Cut(rest, " ")
	version, isNumber := versionOf(number)
	switch {
	case rest == "":
		return c.showSummary(ctx, 0)
	case rest == "list":
		return c.listSummaries(ctx)
	case rest == "diff", word == "diff" && isNumber:
		return c.diff(ctx, version)
	case word == "restore" && isNumber:
		return c.restore(ctx, version)
	}
	if version, ok := versionOf(rest); ok && version > 0 {
		return c.showSummary(ctx, version)
	}
	return core.Errorf(core.ErrInvalid, "write /summary, /summary 2, /summary list, /summary diff, or /summary restore 2")
}

// versionOf reads a version: 2, v2 or #2.
func versionOf(text string) (int, bool) {
	n, err := strconv.Atoi(strings.TrimLeft(strings.TrimSpace(text), "v#"))
	return n, err == nil && n >= 0
}

// active returns the version in use.
func (c *Conversation) active(ctx context.Context) (int, error) {
	session, err := c.Service.Session(ctx, c.Session.ID)
	if err == nil && session.SummaryVersion == 0 {
		err = errNoSummary
	}
	return session.SummaryVersion, err
}

// showSummary shows a version; 0 = the one in use.
func (c *Conversation) showSummary(ctx context.Context, version int) error {
	if version == 0 {
		var err error
		if version, err = c.active(ctx); err != nil {
			return err
		}
	}
	s, err := c.Service.Summary(ctx, c.Session.ID, version)
	if err != nil {
		return err
	}
	width, height := c.Size()
	term.DrawSummary(c.Out, s, time.Now(), width, height)
	return nil
}

func (c *Conversation) listSummaries(ctx context.Context) error {
	page, err := c.Service.Summaries(ctx, c.Session.ID, core.PageQuery{Limit: 20})
	if err != nil {
		return err
	}
	width, _ := c.Size()
	term.DrawVersions(c.Out, page.Items, time.Now(), width)
	if page.NextCursor != nil {
		c.say("  ", "and older ones")
	}
	return nil
}

// diff shows what a version changed; 0 = the one in use.
func (c *Conversation) diff(ctx context.Context, version int) error {
	if version == 0 {
		var err error
		if version, err = c.active(ctx); err != nil {
			return err
		}
	}
	d, err := c.Service.DiffSummary(ctx, c.Session.ID, version, -1)
	if err != nil {
		return err
	}
	width, _ := c.Size()
	term.DrawDiff(c.Out, d, width)
	return nil
}

// undo takes the last summary back.
func (c *Conversation) undo(ctx context.Context) error {
	if c.Session.ID == "" {
		return errNothingSaid
	}
	done, err := c.Service.UndoSummary(ctx, c.Session.ID)
	if err != nil {
		return err
	}
	c.say("· ", term.Restored(done.To, done.Session)+fmt.Sprintf("; /summary restore %d takes that back", done.From))
	return c.warnOfTrigger(ctx)
}

// restore puts an earlier version to use again.
func (c *Conversation) restore(ctx context.Context, version int) error {
	session, err := c.Service.RestoreSummary(ctx, c.Session.ID, version)
	if err != nil {
		return err
	}
	c.say("· ", term.Restored(version, session))
	return c.warnOfTrigger(ctx)
}

// warnOfTrigger says so where what was taken back is about to be made again.
func (c *Conversation) warnOfTrigger(ctx context.Context) error {
	report, err := c.Service.Context(ctx, c.Session.ID)
	if err == nil && report.WillTrigger {
		c.say("  ", "summarization will trigger on the next message")
	}
	return err
}
