package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"bobbin/app/api/ops"
	"bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
)

// maxHistory is the maximum size of a file to import, in bytes; servers accept less.
const maxHistory = 1 << 30

func (p *program) importCommand() *cobra.Command {
	var into core.Session
	cmd := &cobra.Command{
		Use:   "import <file|->",
		Short: "Import conversations from a file of Bobbin, ChatGPT, OpenAI or LangChain",
		Long: "Imports all messages of a conversation or none: JSON lines, a JSON list, or the output of\n" +
			"`sessions export`. Each message may have the format of Bobbin, of OpenAI's chat\n" +
			"completions or of LangChain. The messages go into a new session, or with --session to\n" +
			"the end of an existing one. No agent answers them; the next message may refer to them.\n\n" +
			"A file of several conversations becomes a session each: the export of ChatGPT, as ZIP\n" +
			"archive or conversations.json, and lines of {\"messages\": […]}.",
		Example: "  bobbin import conversation.jsonl --title \"From the old system\"\n" +
			"  bobbin import chatgpt-export.zip\n" +
			"  bobbin sessions export 0192… | bobbin import -",
		Args: requireOne("file", "- reads the standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := p.openHistory(args[0])
			if err != nil {
				return err
			}
			defer h.file.Close()
			return p.withServer(cmd, func(ctx context.Context, s connection) error {
				return p.importFile(ctx, s, h, into)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar((*string)(&into.ID), "session", "", "append to the session with this `id` instead of creating one")
	flags.StringVar(&into.Title, "title", "", "title of the new session (default: the name of the file)")
	flags.StringVar(&into.Agent, "agent", "", "agent of the new session")
	flags.StringVar(&into.UserID, "user", "", "user of the new session")
	for _, other := range []string{"title", "agent", "user"} {
		cmd.MarkFlagsMutuallyExclusive("session", other)
	}
	return p.withJSON(cmd)
}

// historyFile is a file to import, or one of its conversations.
type historyFile struct {
	file    *os.File
	title   string
	body    *io.SectionReader
	format  core.ImportFormat
	many    bool  // it holds conversations, which become a session each
	leftOut int   // pieces that body mentions only, such as images
	others  int   // messages that are not in body: those of other branches
	through int64 // percentage of a file of conversations that is read
}

// openHistory opens a file, and detects what it holds. A pipe is read into memory.
func (p *program) openHistory(name string) (h historyFile, err error) {
	h.file = p.In
	if name != "-" {
		if h.file, err = os.Open(name); err != nil {
			return h, core.Errorf(core.ErrInvalid, "%v", err)
		}
		h.title = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	}
	var in io.ReaderAt = h.file
	size := int64(0)
	if info, err := h.file.Stat(); err == nil && info.Mode().IsRegular() {
		size = info.Size()
	} else {
		data, err := io.ReadAll(io.LimitReader(h.file, maxHistory+1))
		if err != nil {
			return h, fmt.Errorf("read %s: %w", name, err)
		}
		in, size = bytes.NewReader(data), int64(len(data))
	}
	if size > maxHistory {
		return h, core.Errorf(core.ErrTooLarge, "%s is larger than %s bytes: import it in parts", name, core.Number(maxHistory))
	}
	h.body = io.NewSectionReader(in, 0, size)
	// JSON lines begin with a message on the first line; a document is a list, or an object with messages. Whole
	// conversations are the export of ChatGPT, as ZIP archive or conversations.json, or several objects with messages,
	// as files for fine-tuning have one a line.
	h.format = core.ImportLines
	if h.many = h.isArchive(); h.many {
		return h, nil
	}
	var first json.RawMessage
	d, isList := newDecoder(io.NewSectionReader(h.body, 0, size))
	if isList {
		h.format = core.ImportJSON
	}
	if d.Decode(&first) != nil {
		return h, nil
	}
	one, ok := readConversation(first)
	h.many = ok && (isList || one.format == core.ImportLines || d.More())
	if ok || bytes.Contains(first, []byte("\n")) && !d.More() {
		h.format = core.ImportJSON
	}
	return h, nil
}

// importedSession is the result of the import of one conversation.
type importedSession struct {
	SessionID core.SessionID `json:"session_id"`
	core.Imported
}

// importFile imports a file and prints the result.
func (p *program) importFile(ctx context.Context, s connection, h historyFile, into core.Session) error {
	id, err := findSession(ctx, s.client, string(into.ID))
	if err != nil {
		return err
	}
	into.ID = id
	if h.many {
		return p.importConversations(ctx, s, h, into)
	}
	tell := p.progressPrinter()
	tell("importing …")
	done, err := p.importInto(ctx, s, h, into)
	tell("")
	return p.printOrDraw(done, err, func(int, int) {
		fmt.Fprintf(p.Out, "imported %s messages (%s tokens) into session %s\n", core.Number(done.Imported.Imported), core.Number(done.Tokens), done.SessionID)
		p.printLeftOut(done.Imported)
		fmt.Fprintf(p.Out, "to continue: %s\n", p.suggestCommand("chat", "--session", string(done.SessionID)))
	})
}

// progressLines is after how many conversations progress is a line, where there is no terminal.
const progressLines = 100

// importConversations imports the conversations of a file and prints the result. One that cannot be imported keeps
// none of the others back.
func (p *program) importConversations(ctx context.Context, s connection, h historyFile, into core.Session) error {
	if into.ID != "" || into.Title != "" {
		return core.Errorf(core.ErrInvalid, "the file holds conversations, which become a session each: import it without --session and --title")
	}
	tell := p.progressPrinter()
	width, _ := p.terminalSize()
	list, total, failed, empty := []importedSession{}, core.Imported{}, 0, 0
	for one, err := range h.conversations() {
		if err == nil && one.body.Size() == 0 {
			empty++
		} else if err == nil {
			var done importedSession
			if done, err = p.importInto(ctx, s, one, into); err == nil {
				list = append(list, done)
				total.Imported, total.Tokens = total.Imported+done.Imported.Imported, total.Tokens+done.Tokens
				total.Skipped, total.LeftOut = total.Skipped+done.Skipped, total.LeftOut+done.LeftOut
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failed++
			tell("")
			fmt.Fprintf(p.Err, "not imported: %q: %s\n", cmp.Or(one.title, "a conversation without a title"), term.ErrorText(err))
		}
		progress := fmt.Sprintf("imported %s conversations, %d %% of the file", core.Number(len(list)), one.through)
		if tell(progress); width == 0 && (len(list)+failed+empty)%progressLines == 0 {
			fmt.Fprintln(p.Err, progress)
		}
	}
	tell("")
	if empty > 0 {
		fmt.Fprintf(p.Err, "%s conversations have no messages and were skipped\n", core.Number(empty))
	}
	if err := p.printOrDraw(list, nil, func(int, int) {
		fmt.Fprintf(p.Out, "imported %s conversations: %s messages (%s tokens)\n", core.Number(len(list)), core.Number(total.Imported), core.Number(total.Tokens))
		p.printLeftOut(total)
		fmt.Fprintf(p.Out, "to see them: %s\n", p.suggestCommand("sessions", "list"))
	}); err != nil {
		return err
	}
	if failed > 0 {
		return &silentError{fmt.Sprintf("%d conversations were not imported", failed)}
	}
	return nil
}

// importInto imports a history. A session that it created for a history that cannot be imported is called so, and archived.
func (p *program) importInto(ctx context.Context, s connection, h historyFile, into core.Session) (importedSession, error) {
	isNew := into.ID == ""
	if isNew {
		into.Title = core.Clip(cmp.Or(into.Title, h.title), 200)
		session, err := client.Call(ctx, s.client, ops.CreateSession, ops.NewSession{Agent: into.Agent, Title: into.Title, UserID: into.UserID, Source: core.SourceCLI})
		if err != nil {
			return importedSession{}, err
		}
		into.ID = session.ID
	}
	done, err := s.client.ImportMessages(ctx, core.ImportMessages{SessionID: into.ID, Body: h.body, Format: h.format, Source: core.SourceCLI})
	if err != nil {
		err = withFieldErrors(err)
		if isNew {
			ctx, title := context.WithoutCancel(ctx), "not imported: "+cmp.Or(into.Title, "a conversation without a title")
			_, marking := client.Call(ctx, s.client, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: into.ID}, SessionPatch: core.SessionPatch{Title: &title}})
			_, archiving := client.Call(ctx, s.client, ops.ArchiveSession, ops.InSession{SessionID: into.ID})
			err = errors.Join(err, marking, archiving)
		}
	}
	done.LeftOut, done.Skipped = done.LeftOut+h.leftOut, done.Skipped+h.others
	return importedSession{into.ID, done}, err
}

// withFieldErrors returns the error with all the lines that the server rejected.
func withFieldErrors(err error) error {
	problem, ok := errors.AsType[*client.ProblemError](err)
	if !ok || len(problem.Errors) == 0 {
		return err
	}
	message, _, _ := strings.Cut(problem.Detail, ": ")
	return &core.Error{Kind: core.ErrInvalid, Message: message, Fields: problem.Errors, Err: err}
}

func (p *program) printLeftOut(done core.Imported) {
	if done.Skipped > 0 {
		fmt.Fprintf(p.Out, "%s messages were skipped: they belong to other branches, are deleted, or are empty\n", core.Number(done.Skipped))
	}
	if done.LeftOut > 0 {
		fmt.Fprintf(p.Out, "%s pieces that are no text, such as images, were left out; their messages mention them\n", core.Number(done.LeftOut))
	}
}

// progressPrinter returns a function that shows progress on a terminal; without a terminal
// it does nothing.
func (p *program) progressPrinter() func(text string) {
	if width, _ := p.terminalSize(); width == 0 || p.json {
		return func(string) {}
	}
	return func(text string) { fmt.Fprintf(term.Raw(p.Err), "\r\x1b[K%s", text) }
}
