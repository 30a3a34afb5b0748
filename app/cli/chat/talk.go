// Package chat runs a conversation in a terminal: it reads lines, shows answers as they
// stream, and handles slash commands.
package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
)

// service is the part of client.Client that a conversation needs.
type service interface {
	client.Caller
	StartRun(ctx context.Context, op ops.Operation, in any) iter.Seq2[core.Event, error]
	UploadBlob(ctx context.Context, u core.Upload) (core.Blob, error)
}

// Options configure a Conversation.
type Options struct {
	Service service
	Session core.Session // without an ID it is created when it is first needed
	Model   string       // which model answers; empty = the session's
	Lines   term.Reader
	Out     io.Writer
	Notes   io.Writer // everything that is not part of an answer
	// Interrupts reports Ctrl-C while a command or an answer is in progress.
	Interrupts <-chan os.Signal
	// Size returns the terminal's width and height, zeros if there is none.
	Size func() (width, height int)
	// Attended means that a person reads the output: errors are shown and the conversation
	// continues. Otherwise the first error ends it.
	Attended bool
}

// Conversation is an interactive conversation. Not safe for concurrent use.
type Conversation struct {
	Options
	attached   []core.Part    // go with the next message
	lastAnswer core.MessageID // the last answer of this conversation, empty if none yet
}

// New returns a conversation.
func New(o Options) *Conversation { return &Conversation{Options: o} }

// Run reads and answers until the user quits or ctx ends. It returns an error of reading, or,
// if unattended, the first error of a message or command.
func (c *Conversation) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		text, err := c.Lines.Line(ctx)
		switch {
		case errors.Is(err, term.ErrInterrupted):
			fmt.Fprintln(c.Out, "(press Ctrl-D or type /quit to quit)")
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read line: %w", err)
		}
		text = strings.TrimSpace(text)
		if text == "/quit" || text == "/exit" {
			return nil
		}
		select {
		case <-c.Interrupts:
		default:
		}
		if err := c.handleLine(ctx, text); err != nil && !c.Attended {
			return err
		} else if err != nil && ctx.Err() == nil {
			c.printNotice("! ", term.ErrorText(err))
		}
	}
	return nil
}

// ensureSession creates the session if there is none yet.
func (c *Conversation) ensureSession(ctx context.Context) error {
	if c.Session.ID != "" {
		return nil
	}
	in := ops.NewSession{Agent: c.Session.Agent, Model: c.Session.Model, Source: c.Session.Source}
	created, err := client.Call(ctx, c.Service, ops.CreateSession, in)
	if err == nil {
		c.Session = created
	}
	return err
}

// inSession are the fields of operations on the session, which exists.
func (c *Conversation) inSession() ops.InSession { return ops.InSession{SessionID: c.Session.ID} }

// summarizeNow summarizes now and shows its progress.
func (c *Conversation) summarizeNow(ctx context.Context, focus string) error {
	if err := c.ensureSession(ctx); err != nil {
		return err
	}
	stop := c.showProgress("summarizing")
	s, err := client.Call(ctx, c.Service, ops.SummarizeSession, ops.Summarize{InSession: c.inSession(), Focus: focus})
	stop()
	if err != nil {
		return err
	}
	c.printNotice("· ", fmt.Sprintf("summary v%d: %d messages → %d cl100k tokens (%s, %.1f s)", s.Version, s.MessagesCovered, s.TokenCount, s.Strategy, s.Duration.Seconds()))
	if s.Note != "" {
		c.printNotice("  ", s.Note)
	}
	return nil
}

// printNotice writes a line of the program itself, wrapped.
func (c *Conversation) printNotice(mark, text string) {
	width, _ := c.Size()
	fmt.Fprintln(c.Notes, term.Wrap(mark+text, width, "  "))
}

// showProgress shows what is in progress, and for how long, until it is stopped.
func (c *Conversation) showProgress(what string) (stop func()) {
	if width, _ := c.Size(); width == 0 {
		fmt.Fprintf(c.Notes, "· %s …\n", what)
		return func() {}
	}
	start, done, ended := time.Now(), make(chan struct{}), make(chan struct{})
	fmt.Fprintf(c.Out, "· %s …", what)
	go func() {
		defer close(ended)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				fmt.Fprintf(term.Raw(c.Out), "\r\x1b[K· %s … %.0f s", what, time.Since(start).Seconds())
			case <-done:
				fmt.Fprint(term.Raw(c.Out), "\r\x1b[K")
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

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
		in, err := c.inVersion(ctx, version)
		if err != nil {
			return err
		}
		d, err := client.Call(ctx, c.Service, ops.DiffSummary, ops.SummaryDiff{InSummary: in})
		if err == nil {
			width, _ := c.Size()
			term.DrawDiff(c.Out, d, width)
		}
		return err
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
