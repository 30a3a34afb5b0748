package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

func (p *program) exportUserCommand() *cobra.Command {
	owner, file := "", ""
	cmd := &cobra.Command{
		Use:   "export <user_id> -o <file.zip>",
		Short: "Export all data of a user to a ZIP archive",
		Long: "Exports a user's sessions (all branches, with summaries), runs, memories, files and usage, what the user\n" +
			"wrote in sessions of others, and the names of the owner's API keys. The archive's files\n" +
			"sessions/<id>.json can be imported again: see bobbin import.",
		Example: "  bobbin users export alice@example.com --owner web -o alice.zip",
		Args:    requireUser,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withServer(cmd, func(ctx context.Context, s connection) error {
				write := func(w io.Writer) error {
					if owner == "" {
						return s.client.ExportUser(ctx, args[0], w)
					}
					return s.client.ExportUserOf(ctx, owner, args[0], w)
				}
				if file != "-" && file != "" {
					return p.writeFile(file, write)
				}
				if width, _ := p.terminalSize(); width > 0 || file == "" {
					return core.Errorf(core.ErrInvalid, "choose where to write the archive: -o alice.zip, or -o - for a pipe")
				}
				return write(term.Raw(p.Out))
			})
		},
	}
	cmd.Flags().StringVar(&owner, "owner", "", "the owner of the user, the name of an API key (default: the caller's)")
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to this `file`; - is the standard output")
	return cmd
}
