package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bobbin/app/api/ops"
	"bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
)

// noArguments accepts no arguments.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return core.Errorf(core.ErrInvalid, "%s accepts only flags, not %q; see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
}

// requireOne accepts exactly one argument; the hint says how to find it.
func requireOne(what, hint string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 && args[0] != "" {
			return nil
		}
		return core.Errorf(core.ErrInvalid, "which %s? %s; %s", what, cmd.UseLine(), hint)
	}
}

func requireSessionID() cobra.PositionalArgs {
	return requireOne("session", programName()+" sessions list shows the ids")
}

func requireRun() cobra.PositionalArgs {
	return requireOne("run", programName()+" runs list <session id> shows the ids")
}

// rejectUnknownCommand rejects arguments of a command group that are not its commands.
func rejectUnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, c := range cmd.Commands() {
		known = append(known, c.Name())
	}
	text := fmt.Sprintf("unknown command: %s %s", cmd.CommandPath(), args[0])
	if near := core.Nearest(args[0], known); near != "" {
		return core.Errorf(core.ErrInvalid, "%s; did you mean %s %s?", text, cmd.CommandPath(), near)
	}
	return core.Errorf(core.ErrInvalid, "%s; see %s --help", text, cmd.CommandPath())
}

// groupOf returns the command that has the others as its subcommands.
func groupOf(use, short string, cmds ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{Use: use, Short: short, Args: rejectUnknownCommand, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	group.AddCommand(cmds...)
	return group
}

// flagError explains what is wrong with a flag.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var bad *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		if len(name) == 1 {
			return core.Errorf(core.ErrInvalid, "unknown flag: -%s; see %s --help", name, cmd.CommandPath())
		}
		var known []string
		for _, set := range []*pflag.FlagSet{cmd.Flags(), cmd.InheritedFlags()} {
			set.VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		}
		if near := core.Nearest(name, known); near != "" {
			return core.Errorf(core.ErrInvalid, "unknown flag: --%s; did you mean --%s?", name, near)
		}
		return core.Errorf(core.ErrInvalid, "unknown flag: --%s; see %s --help", name, cmd.CommandPath())
	case errors.As(err, &bad) && bad.GetFlag().Value.Type() == "int":
		return core.Errorf(core.ErrInvalid, "--%s: %q is not a whole number", bad.GetFlag().Name, bad.GetValue())
	default:
		return err
	}
}

// requireWords accepts one or more arguments.
func requireWords(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return core.Errorf(core.ErrInvalid, "no search words given: %s", cmd.UseLine())
	}
	return nil
}

// addPageFlags adds the flags --limit and --cursor of a list.
func addPageFlags(cmd *cobra.Command, q *core.PageQuery) {
	cmd.Flags().IntVar(&q.Limit, "limit", core.DefaultPageLimit, "maximum number of results")
	cmd.Flags().StringVar(&q.Cursor, "cursor", "", "continue an earlier list")
}

// withSession is withServer for the session whose id is, or begins with, name.
func (p *program) withSession(cmd *cobra.Command, name string, do func(context.Context, connection, core.SessionID) error) error {
	return p.withServer(cmd, func(ctx context.Context, s connection) error {
		id, err := findSession(ctx, s.client, name)
		if err != nil {
			return err
		}
		return do(ctx, s, id)
	})
}

// withRun is withServer for the run whose id is, or begins with, name.
func (p *program) withRun(cmd *cobra.Command, name string, do func(context.Context, connection, ops.InRun) error) error {
	return p.withServer(cmd, func(ctx context.Context, s connection) error {
		id, err := findRun(ctx, s.client, name)
		if err != nil {
			return err
		}
		return do(ctx, s, ops.InRun{RunID: id})
	})
}

// idLength is the length of a complete id, which is left to the server.
const idLength = 36

// Of so many recent sessions findSession compares the ids with the beginning of one, and findRun of the newest runs.
const maxScanned = 1_000

// maxCandidates is how many ids pickID lists if the beginning of an id is ambiguous.
const maxCandidates = 5

// findSession returns the session whose id is the name, or the only one whose id begins with
// it.
func findSession(ctx context.Context, c *client.Client, name string) (core.SessionID, error) {
	if len(name) >= idLength || name == "" {
		return core.SessionID(name), nil
	}
	texts := map[string]string{}
	q := core.SessionQuery{PageQuery: core.PageQuery{Limit: core.MaxPageLimit}, Archived: true}
	for searched := 0; searched < maxScanned; {
		page, err := client.Call(ctx, c, ops.ListSessions, q)
		if err != nil {
			return "", err
		}
		for _, s := range page.Items {
			texts[string(s.ID)] = s.Title
		}
		if searched += len(page.Items); page.NextCursor == nil {
			break
		}
		q.Cursor = *page.NextCursor
	}
	id, err := pickID("session", name, "sessions list", texts)
	return core.SessionID(id), err
}

// findRun is findSession for a run of the last weeks.
func findRun(ctx context.Context, c *client.Client, name string) (core.RunID, error) {
	if len(name) >= idLength {
		return core.RunID(name), nil
	}
	texts, q := map[string]string{}, recentRuns(core.MaxPageLimit)
	for len(texts) < maxScanned {
		page, err := client.Call(ctx, c, ops.ListAllRuns, q)
		if err != nil {
			return "", err
		}
		for _, r := range page.Items {
			texts[string(r.ID)] = describeRun(r)
		}
		if page.NextCursor == nil {
			break
		}
		q.Cursor = *page.NextCursor
	}
	id, err := pickID("run", name, "runs list <session id>", texts)
	return core.RunID(id), err
}

// recentRuns asks for the newest runs.
func recentRuns(limit int) core.RunQuery {
	return core.RunQuery{From: time.Now().AddDate(0, 0, -30), PageQuery: core.PageQuery{Limit: limit}}
}

// describeRun returns the words beside the id of a run.
func describeRun(r core.RunHead) string {
	return fmt.Sprintf("%s, %s, %s", r.CreatedAt.Local().Format(time.DateTime), r.Status, term.Line(cmp.Or(r.Title, "untitled"), maxTitle))
}

// pickID returns the only id that begins with name; list is the command that shows the ids.
func pickID(what, name, list string, texts map[string]string) (string, error) {
	var found []string
	for id := range texts {
		if strings.HasPrefix(id, strings.ToLower(name)) {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 0:
		return "", core.Errorf(core.ErrNotFound, "no %s id begins with %s; %s %s shows the ids", what, name, programName(), list)
	case 1:
		return found[0], nil
	}
	slices.Sort(found)
	slices.Reverse(found) // the newest first
	var lines strings.Builder
	for i, id := range found {
		if i == maxCandidates {
			fmt.Fprintf(&lines, "\n  and %d more", len(found)-i)
			break
		}
		fmt.Fprintf(&lines, "\n  %s  %s", id, term.Line(texts[id], 2*maxTitle))
	}
	return "", core.Errorf(core.ErrInvalid, "%d %s ids begin with %s; write more of the id:%s", len(found), what, name, &lines)
}

// maxTitle is the maximum width of titles in lists.
const maxTitle = 40

// maxText is the maximum size of a text file or of the standard input, in bytes; the server accepts less.
const maxText = 8 << 20

// readText reads a file; - is the standard input.
func (p *program) readText(name string) (string, error) {
	if name == "-" {
		return readAll(p.In, maxText)
	}
	f, err := os.Open(name)
	if err != nil {
		return "", core.Errorf(core.ErrInvalid, "%v", err)
	}
	defer f.Close()
	return readAll(f, maxText)
}

func readAll(r io.Reader, maxBytes int64) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err == nil && int64(len(data)) > maxBytes {
		return "", core.Errorf(core.ErrTooLarge, "the input has more than %d bytes", maxBytes)
	}
	return string(data), err
}
