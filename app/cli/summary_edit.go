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

func (p *program) editSummaryCommand() *cobra.Command {
	file, version := "", 0
	cmd := &cobra.Command{
		Use:   "edit <id>",
		Short: "Edit the active summary",
		Long: "Opens the active summary in your editor ($VISUAL or $EDITOR), or reads the new text from a file or the\n" +
			"standard input. The result is a new version. If another version has become active meanwhile, nothing changes.",
		Example: "  bobbin summary edit 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243\n" +
			"  bobbin summary edit 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 --file summary.md --version 3",
		Args: requireSessionID, ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withVersion(cmd, args, func(ctx context.Context, s connection, id core.SessionID, active int) error {
				edit := core.SummaryEdit{Version: version}
				if version == 0 {
					edit.Version = active
				}
				current, err := s.client.Summary(ctx, id, active)
				if err == nil {
					edit.Content, err = p.readNewContent(ctx, file, current.Content)
				}
				if err != nil {
					return err
				}
				return p.replaceSummary(ctx, s, id, edit, current)
			})
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "read the text from this `file`; - is the standard input")
	cmd.Flags().IntVar(&version, "version", 0, "edit only if this `version` is active (default: the active one)")
	p.withJSON(cmd)
	return cmd
}

// replaceSummary stores the new text and prints the result.
func (p *program) replaceSummary(ctx context.Context, s connection, id core.SessionID, edit core.SummaryEdit, current core.Summary) error {
	edited, err := s.client.EditSummary(ctx, id, edit)
	if err != nil {
		return err
	}
	switch {
	case p.json:
		return p.printJSON(edited)
	case edited.Version == current.Version:
		fmt.Fprintf(p.Out, "version %d already has this text\n", edited.Version)
	default:
		fmt.Fprintf(p.Out, "version %d: %d tokens, previously %d\nto undo: %s\n", edited.Version, edited.TokenCount, current.TokenCount, p.suggestCommand("summary", "undo", string(id)))
	}
	return nil
}

// readNewContent returns the new text from the file, the standard input or the editor.
func (p *program) readNewContent(ctx context.Context, file, current string) (string, error) {
	if file == "" && !tty.IsTerminal(int(p.In.Fd())) {
		file = "-"
	}
	if file != "" {
		return p.readText(file)
	}
	return p.editInEditor(ctx, current)
}

// maxText is the maximum size of a text file, in bytes; the server accepts less.
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

// editInEditor opens the text in the user's editor and returns the edited text.
func (p *program) editInEditor(ctx context.Context, text string) (string, error) {
	words := strings.Fields(cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR")))
	if len(words) == 0 {
		return "", core.Errorf(core.ErrInvalid, "no editor: set EDITOR, or use --file")
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
		return "", core.Errorf(core.ErrInvalid, "editor %s: %v; the summary has not changed", words[0], err)
	}
	return p.readText(name)
}
