package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app/core"
)

func (p *program) purgeSessionsCommand() *cobra.Command {
	var f purgeFlags
	before, owner, onlyFiles := "", "", false
	cmd := &cobra.Command{
		Use:   "purge <id>… | --archived-before <date> | --compact-only",
		Short: "Permanently remove sessions and everything that belongs to them",
		Long: "Removes sessions with their messages, runs, events, summaries, files and search entries,\n" +
			"and compacts the database files. This cannot be undone. Usage records are kept without\n" +
			"names. If a server runs on the data folder, it does the work.\n\n" +
			"While the files are compacted, nobody can write; on PostgreSQL the table being compacted\n" +
			"cannot be read either. --no-compact skips this step.",
		Example: "  bobbin sessions purge 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243\n" +
			"  bobbin sessions purge --archived-before 2026-01-31 --dry-run",
		ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			in := core.PurgeSessions{Owner: owner}
			for _, id := range args {
				in.IDs = append(in.IDs, core.SessionID(id))
			}
			if before != "" {
				t, err := parseDate(before)
				if err != nil {
					return err
				}
				in.ArchivedBefore = &t
			}
			if onlyFiles {
				if len(args) > 0 || before != "" || f.dryRun || f.noCompact {
					return core.Errorf(core.ErrInvalid, "--compact-only cannot be combined with other options: it removes nothing and only compacts the database files")
				}
				return p.withFolderServer(cmd, p.compactOnly)
			}
			if len(args) == 0 && before == "" {
				return core.Errorf(core.ErrInvalid, "no sessions given: name their ids, or use --archived-before 2026-01-31; %s sessions list shows the ids", programName())
			}
			return p.withFolderServer(cmd, func(ctx context.Context, s connection) error {
				return p.runPurge(ctx, f, "", func(o core.PurgeOptions) (core.PurgeReport, error) {
					in.PurgeOptions = o
					return s.client.PurgeSessions(ctx, in)
				})
			})
		},
	}
	f.addFlags(cmd)
	p.withJSON(cmd)
	cmd.Flags().StringVar(&before, "archived-before", "", "remove all sessions that were archived before this `date`")
	cmd.Flags().StringVar(&owner, "owner", "", "remove only sessions of this owner (the name of an API key)")
	cmd.Flags().BoolVar(&onlyFiles, "compact-only", false, "remove nothing; only compact the database files after earlier purges")
	return cmd
}

// compactOnly compacts the database files after earlier purges.
func (p *program) compactOnly(ctx context.Context, s connection) error {
	report, err := s.client.PurgeSessions(ctx, core.PurgeSessions{PurgeOptions: core.PurgeOptions{Compact: true}})
	if err != nil {
		return err
	}
	if p.json {
		err = p.printJSON(report)
	} else {
		p.printNotes(report)
	}
	return errors.Join(err, checkCompacted(report))
}

// parseDate parses a day in the local time zone, or a time.
func parseDate(s string) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, core.Errorf(core.ErrInvalid, "%q is not a date; write 2026-01-31, or 2026-01-31T12:00:00Z", s)
}
