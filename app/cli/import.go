package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
)

// maxHistory bounds what is read into memory to be sent, in bytes; what a server
// takes is less.
const maxHistory = 1 << 30

func (p *program) importHistory() *cobra.Command {
	var into core.Session
	cmd := &cobra.Command{
		Use:   "import <file|->",
		Short: "Bring a conversation in from a file: of Bobbin, OpenAI or LangChain",
		Long: "Imports messages, the whole file or nothing: JSON lines, a JSON list, or what\n" +
			"`sessions export` wrote. Each message may be in the shape of Bobbin, of OpenAI's chat\n" +
			"completions or of LangChain. They come into a new session, or with --session behind\n" +
			"the messages of an old one. No agent answers them; the next message may refer to them.",
		Example: "  bobbin import conversation.jsonl --title \"From the old system\"\n" +
			"  bobbin sessions export 0192… | bobbin import -",
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := p.readHistory(args[0])
			if err != nil {
				return err
			}
			return p.withServer(cmd, func(ctx context.Context, s connection) error {
				return p.bringIn(ctx, s, h, into)
			})
		},
	}
	p.withJSON(cmd)
	flags := cmd.Flags()
	flags.StringVar((*string)(&into.ID), "session", "", "the session of this `id`, in place of a new one")
	flags.StringVar(&into.Title, "title", "", "of the new session; the name of the file without it")
	flags.StringVar(&into.Agent, "agent", "", "of the new session")
	flags.StringVar(&into.UserID, "user", "", "of the new session")
	for _, other := range []string{"title", "agent", "user"} {
		cmd.MarkFlagsMutuallyExclusive("session", other)
	}
	return cmd
}

// oneFile wants a file's name.
func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return core.Errorf(core.ErrInvalid, "which file? %s; - reads the standard input", cmd.UseLine())
}

// historyFile is a file that is to be imported.
type historyFile struct {
	title  string
	data   []byte
	format core.ImportFormat
}

func (p *program) readHistory(name string) (historyFile, error) {
	h := historyFile{}
	var in io.Reader = p.In
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return h, core.Errorf(core.ErrInvalid, "%v", err)
		}
		defer f.Close()
		in, h.title = f, strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	}
	data, err := io.ReadAll(io.LimitReader(in, maxHistory+1))
	if err != nil {
		return h, fmt.Errorf("read %s: %w", name, err)
	}
	if len(data) > maxHistory {
		return h, core.Errorf(core.ErrTooLarge, "%s is larger than %s bytes: import it in parts", name, term.Number(maxHistory))
	}
	h.data, h.format = data, formatOf(data)
	return h, nil
}

// formatOf returns how a history is written. JSON lines begin with a message on
// its first line; a document is a list, or an object with messages.
func formatOf(data []byte) core.ImportFormat {
	start := bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\uFEFF")))
	line, _, _ := bytes.Cut(start, []byte("\n"))
	var message map[string]json.RawMessage
	switch {
	case bytes.HasPrefix(start, []byte("[")):
		return core.ImportJSON
	case json.Unmarshal(line, &message) == nil:
		if _, document := message["messages"]; document {
			return core.ImportJSON
		}
	case json.Unmarshal(start, &message) == nil: // over several lines
		return core.ImportJSON
	}
	return core.ImportLines
}

// bringIn imports a history and tells what came of it. A session that was made for
// a history that cannot be imported is put away again.
func (p *program) bringIn(ctx context.Context, s connection, h historyFile, into core.Session) error {
	made := into.ID == ""
	if made {
		if into.Title == "" {
			into.Title = core.Clip(h.title, 200)
		}
		into.Source = core.SourceCLI
		session, err := s.client.CreateSession(ctx, into)
		if err != nil {
			return err
		}
		into.ID = session.ID
	}
	body := &upload{data: h.data, reader: bytes.NewReader(h.data), tell: p.progress()}
	done, err := s.client.ImportMessages(ctx, core.ImportMessages{SessionID: into.ID, Body: body, Format: h.format, Source: core.SourceCLI})
	body.end()
	if err != nil {
		err = named(err)
		if made {
			err = errors.Join(err, s.client.ArchiveSession(context.WithoutCancel(ctx), into.ID))
		}
		return err
	}
	if p.json {
		return p.printJSON(struct {
			SessionID core.SessionID `json:"session_id"`
			core.Imported
		}{into.ID, done})
	}
	p.tellImported(into.ID, done)
	return nil
}

// named returns an error with all the lines that it names.
func named(err error) error {
	var told *client.ProblemError
	if !errors.As(err, &told) || len(told.Errors) == 0 {
		return err
	}
	message, _, _ := strings.Cut(told.Detail, ": ")
	return &core.Error{Kind: core.ErrInvalid, Message: message, Fields: told.Errors, Err: err}
}

func (p *program) tellImported(id core.SessionID, done core.Imported) {
	fmt.Fprintf(p.Out, "imported %s messages (%s tokens) into session %s\n", term.Number(done.Imported), term.Number(done.Tokens), id)
	if done.Skipped > 0 {
		fmt.Fprintf(p.Out, "%s messages of other branches, or deleted ones, did not come along\n", term.Number(done.Skipped))
	}
	if done.LeftOut > 0 {
		fmt.Fprintf(p.Out, "%s images or files were left out; their messages say so\n", term.Number(done.LeftOut))
	}
	fmt.Fprintf(p.Out, "to go on: %s chat --session %s\n", programName(), id)
}

// progress returns what shows on a terminal how far it is; nothing elsewhere.
func (p *program) progress() func(text string) {
	if width, _ := p.terminal(); width == 0 || p.json {
		return func(string) {}
	}
	return func(text string) { fmt.Fprintf(p.Err, "\r\x1b[K%s", text) }
}

// upload is a body that tells how much of it was sent.
type upload struct {
	data   []byte
	reader *bytes.Reader
	tell   func(text string)
	told   int
}

// Read is part of io.Reader.
func (u *upload) Read(b []byte) (int, error) {
	n, err := u.reader.Read(b)
	if sent := len(u.data) - u.reader.Len(); sent == len(u.data) {
		u.tell("importing …")
	} else if percent := sent * 100 / len(u.data); percent > u.told {
		u.told = percent
		u.tell(fmt.Sprintf("sending … %d %%", percent))
	}
	return n, err
}

// Again returns the body from its beginning, for a server that has been restarted.
func (u *upload) Again() io.Reader { return bytes.NewReader(u.data) }

// end takes the progress off the screen.
func (u *upload) end() { u.tell("") }
