package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"bobbin/app/api/ops"
	draw "bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
)

// purgeFlags are the flags that both purge commands share.
type purgeFlags struct {
	yes, force, dryRun, noCompact, slackPosts bool
}

func (f *purgeFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask for confirmation")
	cmd.Flags().BoolVar(&f.force, "force", false, "cancel runs that have not ended")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only show what would be removed")
	cmd.Flags().BoolVar(&f.slackPosts, "slack-posts", false, "also delete from Slack what Bobbin posted in the threads of the removed sessions; otherwise it stays there")
	cmd.Flags().BoolVar(&f.noCompact, "no-compact", false, "do not compact the database files: removed data stays in them until its space is reused")
}

// checkCompacted returns an error if the database files were not compacted.
func checkCompacted(r core.PurgeReport) error {
	if r.Compacted {
		return nil
	}
	return core.Errorf(core.ErrUnavailable, "the rows are removed, but their data is still in the database files; %s sessions purge --compact-only compacts them", programName())
}

// runPurge previews, asks for confirmation, purges and reports.
func (p *program) runPurge(ctx context.Context, s connection, f purgeFlags, in core.Purge) error {
	in.PurgeOptions = core.PurgeOptions{DryRun: true, Force: f.force, Compact: !f.noCompact, SlackPosts: f.slackPosts}
	preview, err := client.Call(ctx, s.client, ops.Purge, in)
	if err != nil {
		return err
	}
	if in.User != "" && preview.Rows() == 0 {
		return core.Errorf(core.ErrNotFound, "there is no data of the user %q: check the name and --owner, unless it was removed before", in.User)
	}
	if f.dryRun {
		return p.reportPurge(preview)
	}
	if len(preview.Unfinished) > 0 && !f.force {
		return core.Errorf(core.ErrConflict, "run %s has not ended (%d such runs in total): wait for it, or cancel it with --force", preview.Unfinished[0], len(preview.Unfinished))
	}
	if preview.Rows() == 0 {
		if p.json {
			preview.DryRun = false
			return p.printJSON(preview)
		}
		fmt.Fprintln(p.Out, "nothing to remove")
		return nil
	}
	if !f.yes {
		if err := p.confirmPurge(ctx, purgeQuestion(preview, in.User)); err != nil {
			return err
		}
	}
	in.DryRun = false
	report, err := client.Call(ctx, s.client, ops.Purge, in)
	if err != nil {
		return err
	}
	if err := p.reportPurge(report); err != nil {
		return err
	}
	if n := report.Left(); n > 0 {
		return core.Errorf(core.ErrConflict, "%d rows are left because of writes in the meantime; run the command again", n)
	}
	if f.noCompact {
		return nil
	}
	return checkCompacted(report)
}

func purgeQuestion(r core.PurgeReport, user string) string {
	counts := map[string]int64{}
	for _, t := range r.Tables {
		counts[t.Table] = t.Removed + t.Emptied
	}
	text := fmt.Sprintf("%s with %s", draw.Pluralize(len(r.Sessions), "session"), draw.Pluralize(int(counts["messages"]), "message"))
	if user != "" {
		text = fmt.Sprintf("all data of the user %s (%s, %s, %s)", core.Literal(user), draw.Pluralize(len(r.Sessions), "session"),
			draw.Pluralize(int(counts["messages"]), "message"), draw.Pluralize(int(counts["memories"]), "memory"))
	}
	if r.SlackPosts != nil {
		text += ", and " + draw.Pluralize(int(r.SlackPosts.Found), "post") + " in Slack"
	}
	return "Permanently remove " + text + "? This cannot be undone. [y/N]"
}

// confirmPurge asks on the terminal; any answer but yes is an error.
func (p *program) confirmPurge(ctx context.Context, question string) error {
	width, _ := p.terminalSize()
	if width == 0 || !term.IsTerminal(int(p.In.Fd())) {
		return core.Errorf(core.ErrInvalid, "this cannot be undone, and there is no terminal to confirm it: use --yes, or --dry-run to see what would be removed")
	}
	fmt.Fprint(p.Out, draw.Wrap(question, width, "")+" ")
	said, err := draw.NewPlain(p.In).Line(ctx)
	if answer := strings.ToLower(strings.TrimSpace(said)); err == nil && (answer == "y" || answer == "yes") {
		return nil
	}
	return core.Errorf(core.ErrCanceled, "nothing was removed")
}

// reportPurge prints the result table by table.
func (p *program) reportPurge(r core.PurgeReport) error {
	if p.json {
		return p.printJSON(r)
	}
	l := list[core.PurgedTable]{titles: "TABLE|REMOVED|EMPTIED|LEFT", cells: func(t core.PurgedTable) []any { return []any{t.Table, t.Removed, t.Emptied, t.Left} }}
	if r.DryRun {
		l = list[core.PurgedTable]{titles: "TABLE|TO REMOVE|TO EMPTY", cells: func(t core.PurgedTable) []any { return []any{t.Table, t.Removed, t.Emptied} }}
	}
	if err := printList(p, core.Page[core.PurgedTable]{Items: r.Tables}, nil, l); err != nil {
		return err
	}
	p.printNotes(r)
	return nil
}

// printNotes prints what an operator should know.
func (p *program) printNotes(r core.PurgeReport) {
	width, _ := p.terminalSize()
	var said []string
	switch {
	case r.DryRun && len(r.Unfinished) > 0:
		said = append(said, draw.Pluralize(len(r.Unfinished), "run")+" still active; --force cancels them")
	case r.Compacted:
		said = append(said, "the database files are compacted")
	}
	for _, note := range append(said, r.Notes...) {
		fmt.Fprintln(p.Out, draw.Wrap("- "+note, width, "  "))
	}
}

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
			in := core.Purge{Owner: owner}
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
				return p.withFolderServer(cmd, func(ctx context.Context, s connection) error {
					report, err := client.Call(ctx, s.client, ops.Purge, core.Purge{PurgeOptions: core.PurgeOptions{Compact: true}})
					if err != nil {
						return err
					}
					return errors.Join(p.printOrDraw(report, nil, func(int, int) { p.printNotes(report) }), checkCompacted(report))
				})
			}
			if len(args) == 0 && before == "" {
				return core.Errorf(core.ErrInvalid, "no sessions given: name their ids, or use --archived-before 2026-01-31; %s sessions list shows the ids", programName())
			}
			return p.withFolderServer(cmd, func(ctx context.Context, s connection) error {
				return p.runPurge(ctx, s, f, in)
			})
		},
	}
	f.addFlags(cmd)
	cmd.Flags().StringVar(&before, "archived-before", "", "remove all sessions that were archived before this `date`")
	cmd.Flags().StringVar(&owner, "owner", "", "remove only sessions of this owner (the name of an API key)")
	cmd.Flags().BoolVar(&onlyFiles, "compact-only", false, "remove nothing; only compact the database files after earlier purges")
	return p.withJSON(cmd)
}

// parseDate parses a day in the local time zone, or a time; empty = none.
func parseDate(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, core.Errorf(core.ErrInvalid, "%q is not a date; write 2026-01-31, or 2026-01-31T12:00:00Z", s)
}

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
				return p.runPurge(ctx, s, f, core.Purge{Owner: owner, User: args[0]})
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
				return write(draw.Raw(p.Out))
			})
		},
	}
	cmd.Flags().StringVar(&owner, "owner", "", "the owner of the user, the name of an API key (default: the caller's)")
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to this `file`; - is the standard output")
	return cmd
}
