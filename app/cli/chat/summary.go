package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
)

// Errors of commands that need messages or a summary.
var (
	errNothingSaid = core.Errorf(core.ErrUnprocessable, "there are no messages yet")
	errNoSummary   = core.Errorf(core.ErrUnprocessable, "there is no active summary; /summarize creates one, /summary list shows earlier versions")
)

// handleSummary shows the active summary, another version, all versions or changes, or
// restores a version, as rest says.
func (c *Conversation) handleSummary(ctx context.Context, rest string) error {
	if c.Session.ID == "" {
		return errNothingSaid
	}
	word, number, _ := strings.Cut(rest, " ")
	version, isNumber := versionOf(number)
	switch {
	case rest == "":
		return c.showSummary(ctx, 0)
	case rest == "list":
		page, err := client.Call(ctx, c.Service, ops.ListSummaries, ops.SessionPage{InSession: c.inSession(), PageQuery: core.PageQuery{Limit: 20}})
		if err != nil {
			return err
		}
		width, _ := c.Size()
		term.DrawVersions(c.Out, page.Items, time.Now(), width)
		if page.NextCursor != nil {
			c.printNotice("  ", "and older ones")
		}
		return nil
	case rest == "diff", word == "diff" && isNumber:
		return c.showDiff(ctx, version)
	case word == "restore" && isNumber:
		session, err := client.Call(ctx, c.Service, ops.RestoreSummary, ops.SummaryRestore{InSession: c.inSession(), Version: version})
		if err != nil {
			return err
		}
		c.printNotice("· ", term.RestoredText(version, session))
		return c.warnOfTrigger(ctx)
	}
	if version, ok := versionOf(rest); ok && version > 0 {
		return c.showSummary(ctx, version)
	}
	return core.Errorf(core.ErrInvalid, "use /summary, /summary 2, /summary list, /summary diff, or /summary restore 2")
}

// versionOf parses a version: 2, v2 or #2.
func versionOf(text string) (int, bool) {
	n, err := strconv.Atoi(strings.TrimLeft(strings.TrimSpace(text), "v#"))
	return n, err == nil && n >= 0
}

// inVersion are the fields of operations on a version; 0 = the active one.
func (c *Conversation) inVersion(ctx context.Context, version int) (ops.InSummary, error) {
	in := ops.InSummary{InSession: c.inSession(), Version: version}
	if version > 0 {
		return in, nil
	}
	session, err := client.Call(ctx, c.Service, ops.GetSession, in.InSession)
	if in.Version = session.SummaryVersion; err == nil && in.Version == 0 {
		err = errNoSummary
	}
	return in, err
}

// showSummary shows a version; 0 = the active one.
func (c *Conversation) showSummary(ctx context.Context, version int) error {
	in, err := c.inVersion(ctx, version)
	if err != nil {
		return err
	}
	s, err := client.Call(ctx, c.Service, ops.GetSummary, in)
	if err != nil {
		return err
	}
	width, height := c.Size()
	term.DrawSummary(c.Out, s, time.Now(), width, height)
	return nil
}

// showDiff shows what a version changed; 0 = the active one.
func (c *Conversation) showDiff(ctx context.Context, version int) error {
	in, err := c.inVersion(ctx, version)
	if err != nil {
		return err
	}
	d, err := client.Call(ctx, c.Service, ops.DiffSummary, ops.SummaryDiff{InSummary: in})
	if err != nil {
		return err
	}
	width, _ := c.Size()
	term.DrawDiff(c.Out, d, width)
	return nil
}

// undoSummary undoes the last summary: it restores the version that was active before it on this path,
// or none.
func (c *Conversation) undoSummary(ctx context.Context) error {
	if c.Session.ID == "" {
		return errNothingSaid
	}
	before, err := client.Call(ctx, c.Service, ops.GetSession, c.inSession())
	if err == nil && before.SummaryVersion == 0 {
		err = core.Errorf(core.ErrUnprocessable, "there is no summary to undo")
	}
	if err != nil {
		return err
	}
	page, err := client.Call(ctx, c.Service, ops.ListSummaries, ops.SessionPage{InSession: c.inSession(), PageQuery: core.PageQuery{Limit: core.MaxPageLimit}})
	if err != nil {
		return err
	}
	// Neither a version that was undone, nor the one that the session's version repeats.
	earlier := slices.DeleteFunc(page.Items, func(s core.Summary) bool {
		repeated := before.ConversationSummary != nil && s.Content == *before.ConversationSummary &&
			before.SummaryThroughID != nil && s.ThroughID == *before.SummaryThroughID
		return s.Version >= before.SummaryVersion || s.Kind != core.SummaryRolling || s.State != core.SummaryDropped || s.ActivatedAt == nil || repeated
	})
	for _, s := range append(earlier, core.Summary{}) {
		after, err := client.Call(ctx, c.Service, ops.RestoreSummary, ops.SummaryRestore{InSession: c.inSession(), Version: s.Version})
		if errors.Is(err, core.ErrUnprocessable) && s.Version != 0 { // of another branch
			continue
		}
		if err != nil {
			return err
		}
		c.printNotice("· ", term.RestoredText(s.Version, after)+fmt.Sprintf("; to undo: /summary restore %d", before.SummaryVersion))
		break
	}
	return c.warnOfTrigger(ctx)
}

// warnOfTrigger warns if the next message will summarize again.
func (c *Conversation) warnOfTrigger(ctx context.Context) error {
	report, err := client.Call(ctx, c.Service, ops.GetContext, c.inSession())
	if err == nil && report.WillTrigger {
		c.printNotice("  ", "summarization will trigger on the next message")
	}
	return err
}
