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

func (p *program) exportSessionCommand() *cobra.Command {
	format, file := "", ""
	cmd := &cobra.Command{
		Use:   "export <id>",
		Short: "Export a session as JSON, JSON lines or Markdown",
		Long: "Exports a whole session. json (the session, its messages and its summaries) and jsonl\n" +
			"(its messages, one per line) can be imported again; markdown is for reading.",
		Example: "  bobbin sessions export 0192… -o conversation.json\n  bobbin sessions export 0192… --format markdown | less",
		Args:    requireSessionID, ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withSession(cmd, args[0], func(ctx context.Context, s connection, id core.SessionID) error {
				write := func(w io.Writer) error {
					return s.client.ExportSession(ctx, id, core.ExportFormat(format), w)
				}
				if file == "" || file == "-" {
					return write(p.dataOutput(core.ExportFormat(format) == core.ExportMarkdown))
				}
				return p.writeFile(file, write)
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", string(core.ExportJSON), "json, jsonl or markdown")
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to this `file` instead of the standard output")
	return cmd
}

// dataOutput returns the standard output: raw for data that goes to another program, byte
// for byte, and cleaned for text that people read.
func (p *program) dataOutput(isText bool) io.Writer {
	if width, _ := p.terminalSize(); width > 0 || isText {
		return p.Out
	}
	return term.Raw(p.Out)
}

// writeFile writes a file completely or not at all.
func (p *program) writeFile(name string, write func(io.Writer) error) (err error) {
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
		fmt.Fprintf(p.Err, "%s bytes in %s\n", core.Number(int(info.Size())), name)
	}
	return nil
}
