package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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

// groupOf returns the command that has the others as its subcommands.
func groupOf(use, short string, cmds ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{Use: use, Short: short, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	group.AddCommand(cmds...)
	group.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		var known []string
		for _, c := range cmd.Commands() {
			known = append(append(known, c.Name()), c.Aliases...)
		}
		path := cmd.CommandPath()
		return core.Errorf(core.ErrInvalid, "unknown command: %s %s; %s", path, args[0], core.Suggest(args[0], known, path+" ", "see "+path+" --help"))
	}
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
		return core.Errorf(core.ErrInvalid, "unknown flag: --%s; %s", name, core.Suggest(name, known, "--", "see "+cmd.CommandPath()+" --help"))
	case errors.As(err, &bad) && bad.GetFlag().Value.Type() == "int":
		return core.Errorf(core.ErrInvalid, "--%s: %q is not a whole number", bad.GetFlag().Name, bad.GetValue())
	default:
		return err
	}
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

// withRun is withServer for the run of the last weeks whose id is, or begins with, name.
func (p *program) withRun(cmd *cobra.Command, name string, do func(context.Context, connection, ops.InRun) error) error {
	return p.withServer(cmd, func(ctx context.Context, s connection) error {
		id, err := findID("run", name, "runs list <session id>", describeRun, func(cursor string) (core.Page[core.RunHead], error) {
			q := recentRuns(core.MaxPageLimit)
			q.Cursor = cursor
			list, err := client.Call(ctx, s.client, ops.ListAllRuns, q)
			return core.Page[core.RunHead]{Items: list.Items, NextCursor: list.NextCursor}, err
		})
		if err != nil {
			return err
		}
		return do(ctx, s, ops.InRun{RunID: core.RunID(id)})
	})
}

// idLength is the length of a complete id, which is left to the server.
const idLength = 36

// Of so many of the most recent items findID compares the ids with the beginning of one, and lists so many if that is
// ambiguous.
const (
	maxScanned    = 1_000
	maxCandidates = 5
)

// findSession returns the session whose id is the name, or the only one whose id begins with
// it.
func findSession(ctx context.Context, c *client.Client, name string) (core.SessionID, error) {
	describe := func(s core.Session) (id, text string) { return string(s.ID), s.Title }
	id, err := findID("session", name, "sessions list", describe, func(cursor string) (core.Page[core.Session], error) {
		return client.Call(ctx, c, ops.ListSessions, core.SessionQuery{PageQuery: core.PageQuery{Limit: core.MaxPageLimit, Cursor: cursor}, Archived: true})
	})
	return core.SessionID(id), err
}

// recentRuns asks for the newest runs.
func recentRuns(limit int) core.RunQuery {
	return core.RunQuery{From: time.Now().AddDate(0, 0, -30), PageQuery: core.PageQuery{Limit: limit}}
}

// describeRun returns the id of a run, and the words beside it.
func describeRun(r core.RunHead) (id, text string) {
	return string(r.ID), fmt.Sprintf("%s, %s, %s", r.CreatedAt.Local().Format(time.DateTime), r.Status, term.Line(cmp.Or(r.Title, "untitled"), maxTitle))
}

// findID returns the name if it is empty or a whole id, else the only id of a list that begins with it. Command shows
// the ids.
func findID[T any](what, name, command string, describe func(T) (id, text string), list func(cursor string) (core.Page[T], error)) (string, error) {
	if len(name) >= idLength || name == "" {
		return name, nil
	}
	var found, lines []string
	more, cursor := true, ""
	for scanned := 0; more && scanned < maxScanned; {
		page, err := list(cursor)
		if err != nil {
			return "", err
		}
		for _, item := range page.Items {
			if id, text := describe(item); strings.HasPrefix(id, strings.ToLower(name)) {
				found, lines = append(found, id), append(lines, "\n  "+id+"  "+term.Line(text, 2*maxTitle))
			}
		}
		scanned += len(page.Items)
		if more = page.NextCursor != nil; more {
			cursor = *page.NextCursor
		}
	}
	switch n := len(found) - maxCandidates; {
	case len(found) == 0:
		return "", core.Errorf(core.ErrNotFound, "no %s id begins with %s; %s %s shows the ids", what, name, programName(), command)
	case len(found) == 1:
		return found[0], nil
	case n > 0:
		lines = append(lines[:maxCandidates], fmt.Sprintf("\n  and %d more", n))
	}
	return "", core.Errorf(core.ErrInvalid, "%d %s ids begin with %s; write more of the id:%s", len(found), what, name, strings.Join(lines, ""))
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
