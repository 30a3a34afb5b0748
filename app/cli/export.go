package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

func (p *program) exportSession() *cobra.Command {
	format, file := "", ""
	cmd := &cobra.Command{
		Use:   "export <id>",
		Short: "Write a session out: as JSON, JSON lines or Markdown",
		Long: "Writes a whole session: json (the session, its messages and its summaries) and jsonl\n" +
			"(its messages, one a line) can be imported again; markdown is to be read.",
		Example: "  bobbin sessions export 0192… -o conversation.json\n  bobbin sessions export 0192… --format markdown | less",
		Args:    oneID, ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withServer(cmd, func(ctx context.Context, s connection) error {
				write := func(w io.Writer) error {
					return s.client.ExportSession(ctx, core.SessionID(args[0]), core.ExportFormat(format), w)
				}
				if file == "" || file == "-" {
					return write(p.screen())
				}
				return p.toFile(file, write)
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", string(core.ExportJSON), "json, jsonl or markdown")
	cmd.Flags().StringVarP(&file, "output", "o", "", "into this `file`, in place of the standard output")
	return cmd
}

// screen returns the standard output. On a terminal nothing passes that steers it.
func (p *program) screen() io.Writer {
	if width, _ := p.terminal(); width == 0 {
		return p.Out
	}
	return cleaned{p.Out}
}

// cleaned is a writer without control characters.
type cleaned struct{ io.Writer }

// Write is part of io.Writer. A character that two pieces share is shown as U+FFFD.
func (c cleaned) Write(b []byte) (int, error) {
	if _, err := io.WriteString(c.Writer, term.Clean(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// toFile writes a file whole or not at all.
func (p *program) toFile(name string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".bobbin-export-*")
	if err != nil {
		return core.Errorf(core.ErrInvalid, "%v", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	out := bufio.NewWriter(f)
	if err := errors.Join(write(out), out.Flush(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err == nil {
		fmt.Fprintf(p.Err, "%s bytes in %s\n", term.Number(int(info.Size())), name)
	}
	return nil
}
