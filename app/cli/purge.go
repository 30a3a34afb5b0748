package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"bobbin/app"
	"bobbin/app/cli/line"
	draw "bobbin/app/cli/term"
	"bobbin/app/core"
	"bobbin/app/folder"
	"bobbin/app/purge"
)

// purger removes sessions and users: a running server, or this process.
type purger interface {
	PurgeSessions(ctx context.Context, in core.PurgeSessions) (core.PurgeReport, error)
	PurgeUser(ctx context.Context, in core.PurgeUser) (core.PurgeReport, error)
}

// here is a purger in this process.
type here struct{ *purge.Service }

// PurgeSessions removes sessions.
func (h here) PurgeSessions(ctx context.Context, in core.PurgeSessions) (core.PurgeReport, error) {
	return h.Sessions(ctx, in)
}

// PurgeUser removes everything of a user.
func (h here) PurgeUser(ctx context.Context, in core.PurgeUser) (core.PurgeReport, error) {
	return h.User(ctx, in)
}

// withPurger calls do with the server that holds the data folder, or with this
// process, which holds it meanwhile.
func (p *program) withPurger(cmd *cobra.Command, do func(context.Context, purger) error) error {
	cfg, origins, err := p.load(cmd)
	if err != nil {
		return err
	}
	if running, ok := folder.Running(cfg.DataDir); ok {
		s, err := reach(cfg.DataDir, running)
		if err != nil {
			return err
		}
		return do(cmd.Context(), s.client)
	}
	logger, err := p.logger(cfg, origins, true)
	if err != nil {
		return err
	}
	return app.Purge(cmd.Context(), cfg, logger, func(s *purge.Service) error { return do(cmd.Context(), here{s}) })
}

// purging is what the flags of both purges say.
type purging struct {
	yes, force, dryRun, noCompact bool
}

func (f *purging) addTo(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&f.force, "force", false, "cancel runs that have not ended")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only say what would be removed")
	cmd.Flags().BoolVar(&f.noCompact, "no-compact", false, "leave removed bytes in the database's files until their space is used again")
}

// options returns what is asked of the purger.
func (f *purging) options(dry bool) core.PurgeOptions {
	return core.PurgeOptions{DryRun: dry, Force: f.force, Compact: !f.noCompact}
}

func (p *program) purgeSessions() *cobra.Command {
	var f purging
	before, owner, onlyFiles := "", "", false
	cmd := &cobra.Command{
		Use:   "purge <id>… | --archived-before <date> | --compact-only",
		Short: "Remove sessions for good, with everything that belongs to them",
		Long: "Removes sessions with their messages, runs, events, summaries, files and search entries,\n" +
			"and takes the bytes out of the database's files. Nothing brings them back. The books stay,\n" +
			"without a name in them. A server that runs on the data folder does the work itself.\n\n" +
			"While the files are written anew nobody can write; on PostgreSQL nobody can read the table\n" +
			"at hand either. --no-compact leaves that out.",
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
					return core.Errorf(core.ErrInvalid, "--compact-only stands alone: it removes nothing, but takes out of the files what was removed before")
				}
				return p.withPurger(cmd, p.compactOnly)
			}
			if len(args) == 0 && before == "" {
				return core.Errorf(core.ErrInvalid, "which sessions? name their ids, or --archived-before 2026-01-31; %s sessions list shows the ids", programName())
			}
			return p.withPurger(cmd, func(ctx context.Context, s purger) error {
				return p.runPurge(ctx, f, "", func(o core.PurgeOptions) (core.PurgeReport, error) {
					in.PurgeOptions = o
					return s.PurgeSessions(ctx, in)
				})
			})
		},
	}
	f.addTo(cmd)
	p.withJSON(cmd)
	cmd.Flags().StringVar(&before, "archived-before", "", "also all sessions that were archived before this `date`")
	cmd.Flags().StringVar(&owner, "owner", "", "only sessions of this owner (the name of an API key)")
	cmd.Flags().BoolVar(&onlyFiles, "compact-only", false, "remove nothing, but take the bytes of earlier purges out of the database's files")
	return cmd
}

// compactOnly takes what was removed before out of the database's files.
func (p *program) compactOnly(ctx context.Context, s purger) error {
	report, err := s.PurgeSessions(ctx, core.PurgeSessions{PurgeOptions: core.PurgeOptions{Compact: true}})
	if err != nil {
		return err
	}
	if p.json {
		err = p.printJSON(report)
	} else {
		p.printNotes(report)
	}
	return errors.Join(err, notCompacted(report))
}

// notCompacted returns an error if the bytes were to leave the files and did not.
func notCompacted(r core.PurgeReport) error {
	if r.Compacted {
		return nil
	}
	return core.Errorf(core.ErrUnavailable, "the rows are removed, their bytes are still in the database's files; %s sessions purge --compact-only takes them out", programName())
}

func (p *program) users() *cobra.Command {
	cmd := &cobra.Command{Use: "users", Short: "Remove users for good", Args: needsCommand, RunE: showHelp}
	var f purging
	owner := core.LocalOwner
	purge := &cobra.Command{
		Use:   "purge <user_id>",
		Short: "Remove everything of a user, and prove it",
		Long: "Removes a user's sessions, memories and files with everything that belongs to them, empties\n" +
			"what the user wrote in sessions of others (with the answers to it and the summaries of it),\n" +
			"takes the name out of the books, and the bytes out of the database's files. Nothing brings\n" +
			"them back. The report is counted anew afterwards: rows left is a search, not a sum.\n\n" +
			"Not in reach: what others quoted, the write-ahead log of PostgreSQL, backups and replicas.",
		Example: "  bobbin users purge alice@example.com --owner web --dry-run\n" +
			"  bobbin users purge alice@example.com --owner web",
		Args: oneUser,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withPurger(cmd, func(ctx context.Context, s purger) error {
				return p.runPurge(ctx, f, args[0], func(o core.PurgeOptions) (core.PurgeReport, error) {
					return s.PurgeUser(ctx, core.PurgeUser{Owner: owner, User: args[0], PurgeOptions: o})
				})
			})
		},
	}
	f.addTo(purge)
	p.withJSON(purge)
	purge.Flags().StringVar(&owner, "owner", owner, "whose user it is (the name of an API key)")
	cmd.AddCommand(purge)
	return cmd
}

// oneUser wants a user's id.
func oneUser(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && args[0] != "" {
		return nil
	}
	return core.Errorf(core.ErrInvalid, "which user? %s", cmd.UseLine())
}

// parseDate reads a day of this machine's time zone, or a moment.
func parseDate(s string) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, core.Errorf(core.ErrInvalid, "%q is not a date; write 2026-01-31, or 2026-01-31T12:00:00Z", s)
}

// runPurge looks, asks, purges and reports. User is empty for sessions.
func (p *program) runPurge(ctx context.Context, f purging, user string, do func(core.PurgeOptions) (core.PurgeReport, error)) error {
	preview, err := do(f.options(true))
	if err != nil {
		return err
	}
	if f.dryRun {
		return p.reportPurge(preview)
	}
	if len(preview.Unfinished) > 0 && !f.force {
		return core.Errorf(core.ErrConflict, "run %s has not ended (%d such runs in all): wait for it, or cancel with --force", preview.Unfinished[0], len(preview.Unfinished))
	}
	if rowsOf(preview) == 0 {
		return p.nothingToPurge(preview)
	}
	if !f.yes {
		if err := p.confirm(ctx, question(preview, user)); err != nil {
			return err
		}
	}
	report, err := do(f.options(false))
	if err != nil {
		return err
	}
	if err := p.reportPurge(report); err != nil {
		return err
	}
	if n := report.Left(); n > 0 {
		return core.Errorf(core.ErrConflict, "%d rows are left: somebody wrote meanwhile; do it again", n)
	}
	if f.noCompact {
		return nil
	}
	return notCompacted(report)
}

func rowsOf(r core.PurgeReport) int64 {
	var n int64
	for _, t := range r.Tables {
		n += t.Removed + t.Emptied
	}
	return n
}

func (p *program) nothingToPurge(r core.PurgeReport) error {
	if p.json {
		r.DryRun = false
		return p.printJSON(r)
	}
	fmt.Fprintln(p.Out, "there is nothing to remove")
	return nil
}

// question is what is asked before a purge.
func question(r core.PurgeReport, user string) string {
	counts := map[string]int64{}
	for _, t := range r.Tables {
		counts[t.Table] = t.Removed + t.Emptied
	}
	text := fmt.Sprintf("%s with %s", count(int64(len(r.Sessions)), "session"), count(counts["messages"], "message"))
	if user != "" {
		text = fmt.Sprintf("everything of the user %s (%s, %s, %s)", draw.Clean(user), count(int64(len(r.Sessions)), "session"),
			count(counts["messages"], "message"), strings.Replace(count(counts["memories"], "memory"), "memorys", "memories", 1))
	}
	return "Remove " + text + " for good? Nothing brings it back. [y/N]"
}

// count returns a number with its noun.
func count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// confirm asks on the terminal; anything but yes is an error.
func (p *program) confirm(ctx context.Context, question string) error {
	width, _ := p.terminal()
	if width == 0 || !term.IsTerminal(int(p.In.Fd())) {
		return core.Errorf(core.ErrInvalid, "this cannot be undone, and there is no terminal to ask on: say --yes, or look with --dry-run")
	}
	fmt.Fprint(p.Out, draw.Wrap(question, width, "")+" ")
	said, err := line.NewPlain(p.In).Line(ctx)
	if answer := strings.ToLower(strings.TrimSpace(said)); err == nil && (answer == "y" || answer == "yes") {
		return nil
	}
	return core.Errorf(core.ErrCanceled, "nothing was removed")
}

// reportPurge prints what was done, table by table.
func (p *program) reportPurge(r core.PurgeReport) error {
	if p.json {
		return p.printJSON(r)
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	if r.DryRun {
		fmt.Fprintln(w, "TABLE\tTO REMOVE\tTO EMPTY")
	} else {
		fmt.Fprintln(w, "TABLE\tREMOVED\tEMPTIED\tLEFT")
	}
	for _, t := range r.Tables {
		if r.DryRun {
			fmt.Fprintf(w, "%s\t%d\t%d\n", t.Table, t.Removed, t.Emptied)
		} else {
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\n", t.Table, t.Removed, t.Emptied, t.Left)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	p.printNotes(r)
	return nil
}

// printNotes prints what an operator should know.
func (p *program) printNotes(r core.PurgeReport) {
	width, _ := p.terminal()
	var said []string
	switch {
	case r.DryRun && len(r.Unfinished) > 0:
		said = append(said, count(int64(len(r.Unfinished)), "run")+" not ended yet: --force cancels")
	case r.Compacted:
		said = append(said, "the removed bytes are out of the database's files")
	}
	for _, note := range append(said, r.Notes...) {
		fmt.Fprintln(p.Out, draw.Wrap("- "+note, width, "  "))
	}
}
