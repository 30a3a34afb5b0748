package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	tty "golang.org/x/term"

	"bobbin/app/core"
)

func (p *program) editSummary() *cobra.Command {
	file, version := "", 0
	cmd := &cobra.Command{
		Use:   "edit <id>",
		Short: "Edit the summary in use",
		Long: "Opens the summary in use in your editor ($VISUAL or $EDITOR), or takes its new words from a file or\n" +
			"the standard input. It becomes a new version; if another one came into use meanwhile, nothing is changed.",
		Example: "  bobbin summary edit 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243\n" +
			"  bobbin summary edit 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 --file summary.md --version 3",
		Args: oneID, ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withVersion(cmd, args, func(ctx context.Context, s connection, id core.SessionID, active int) error {
				edit := core.SummaryEdit{Version: version}
				if version == 0 {
					edit.Version = active
				}
				current, err := s.client.Summary(ctx, id, active)
				if err == nil {
					edit.Content, err = p.newWords(ctx, file, current.Content)
				}
				if err != nil {
					return err
				}
				return p.replaceSummary(ctx, s, id, edit, current)
			})
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "take the words from this `file`; - is the standard input")
	cmd.Flags().IntVar(&version, "version", 0, "only if this `version` is in use (default: the one that is now)")
	p.withJSON(cmd)
	return cmd
}

// replaceSummary stores the words and says what came of it.
func (p *program) replaceSummary(ctx context.Context, s connection, id core.SessionID, edit core.SummaryEdit, current core.Summary) error {
	made, err := s.client.EditSummary(ctx, id, edit)
	if err != nil {
		return err
	}
	switch {
	case p.json:
		return p.printJSON(made)
	case made.Version == current.Version:
		fmt.Fprintf(p.Out, "version %d says that already\n", made.Version)
	default:
		fmt.Fprintf(p.Out, "version %d: %d tokens, before %d\nthis takes it back: %s summary undo %s\n", made.Version, made.TokenCount, current.TokenCount, programName(), id)
	}
	return nil
}

// newWords returns the words from the file, the standard input or the editor.
func (p *program) newWords(ctx context.Context, file, current string) (string, error) {
	if file == "" && !tty.IsTerminal(int(p.In.Fd())) {
		file = "-"
	}
	if file != "" {
		return p.readText(file)
	}
	return p.edited(ctx, current)
}

// maxText bounds a text that is read from a file, in bytes; the server takes less.
const maxText = 8 << 20

// readText reads a file; - is the standard input.
func (p *program) readText(name string) (string, error) {
	if name == "-" {
		return p.readInput(maxText)
	}
	f, err := os.Open(name)
	if err != nil {
		return "", core.Errorf(core.ErrInvalid, "--file: %v", err)
	}
	defer f.Close()
	return readAll(f, maxText)
}

// edited opens the text in the user's editor and returns what it is when that ends.
func (p *program) edited(ctx context.Context, text string) (string, error) {
	words := strings.Fields(cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR")))
	if len(words) == 0 {
		return "", core.Errorf(core.ErrInvalid, "which editor? set EDITOR, or use --file")
	}
	dir, err := os.MkdirTemp("", "bobbin-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "summary.md")
	if err := os.WriteFile(name, []byte(text+"\n"), 0o600); err != nil {
		return "", err
	}
	editor := exec.CommandContext(ctx, words[0], append(words[1:], name)...) //nolint:gosec // the user's own editor
	editor.Stdin, editor.Stdout, editor.Stderr = p.In, p.Out, p.Err
	if err := editor.Run(); err != nil {
		return "", core.Errorf(core.ErrInvalid, "the editor %s: %v; the summary is as it was", words[0], err)
	}
	return p.readText(name)
}
