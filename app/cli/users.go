package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"bobbin/app/api/ops"
	"bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
)

func (p *program) purgeUserCommand() *cobra.Command {
	var f purgeFlags
	owner := core.LocalOwner
	cmd := &cobra.Command{
		Use:   "purge <user_id>",
		Short: "Permanently remove all data of a user, and verify it",
		Long: "Removes a user's sessions, memories and files with everything that belongs to them, empties\n" +
			"what the user wrote in sessions of others (with the answers and summaries based on it),\n" +
			"removes the name from the usage records, and compacts the database files. This cannot be\n" +
			"undone. Afterwards it searches the database again: the report shows the rows really left.\n\n" +
			"Not covered: quotes by other users, PostgreSQL's write-ahead log, backups and replicas.",
		Example: "  bobbin users purge alice@example.com --owner web --dry-run\n" +
			"  bobbin users purge alice@example.com --owner web",
		Args: requireOne("user", "the id is the user_id of requests"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withFolderServer(cmd, func(ctx context.Context, s connection) error {
				return p.runPurge(ctx, f, args[0], func(o core.PurgeOptions) (core.PurgeReport, error) {
					return client.Call(ctx, s.client, ops.PurgeUser, core.PurgeUser{Owner: owner, User: args[0], PurgeOptions: o})
				})
			})
		},
	}
	f.addFlags(cmd)
	cmd.Flags().StringVar(&owner, "owner", owner, "the owner of the user (the name of an API key)")
	return p.withJSON(cmd)
}

func (p *program) exportUserCommand() *cobra.Command {
	owner, file := "", ""
	cmd := &cobra.Command{
		Use:   "export <user_id> -o <file.zip>",
		Short: "Export all data of a user to a ZIP archive",
		Long: "Exports a user's sessions (all branches, with summaries), runs, memories, files and usage, what the user\n" +
			"wrote in sessions of others, and the names of the owner's API keys. The archive's files\n" +
			"sessions/<id>.json can be imported again: see bobbin import.",
		Example: "  bobbin users export alice@example.com --owner web -o alice.zip",
		Args:    requireOne("user", "the id is the user_id of requests"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withServer(cmd, func(ctx context.Context, s connection) error {
				write := func(w io.Writer) error {
					if owner == "" {
						return client.Download(ctx, s.client, ops.ExportUser, ops.UserExport{UserID: args[0]}, w)
					}
					return client.Download(ctx, s.client, ops.ExportAnyUser, ops.OwnersExport{Owner: owner, UserID: args[0]}, w)
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
