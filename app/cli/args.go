package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bobbin/app/core"
)

// noArguments accepts no arguments.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return core.Errorf(core.ErrInvalid, "%s accepts only flags, not %q; see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
}

// allowMaxArgs accepts at most n arguments.
func allowMaxArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		return core.Errorf(core.ErrInvalid, "too many arguments, starting with %q; usage: %s", args[n], cmd.UseLine())
	}
}

// requireSessionID accepts exactly one argument, a session's id.
func requireSessionID(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return core.Errorf(core.ErrInvalid, "which session? %s; %s sessions list shows the ids", cmd.UseLine(), programName())
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

// showHelp shows the help of a command group.
func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

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

// requireOneArg accepts exactly one argument; ask is the question if it is missing.
func requireOneArg(ask string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return core.Errorf(core.ErrInvalid, "%s; usage: %s", ask, cmd.UseLine())
		case len(args) > 1:
			return core.Errorf(core.ErrInvalid, "too many arguments, starting with %q; usage: %s", args[1], cmd.UseLine())
		default:
			return nil
		}
	}
}

// requireFile accepts exactly one argument, a file name.
func requireFile(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return core.Errorf(core.ErrInvalid, "which file? %s; - reads the standard input", cmd.UseLine())
}

// requireRun accepts exactly one argument, a run's id.
func requireRun(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return core.Errorf(core.ErrInvalid, "which run? %s; %s runs list <session id> shows the ids", cmd.UseLine(), programName())
}

// requireWords accepts one or more arguments.
func requireWords(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return core.Errorf(core.ErrInvalid, "no search words given: %s", cmd.UseLine())
	}
	return nil
}

// requireUser accepts exactly one argument, a user's id.
func requireUser(cmd *cobra.Command, args []string) error {
	if len(args) == 1 && args[0] != "" {
		return nil
	}
	return core.Errorf(core.ErrInvalid, "which user? %s", cmd.UseLine())
}

// addPageFlags adds the flags --limit and --cursor of a list.
func addPageFlags(cmd *cobra.Command, q *core.PageQuery) {
	cmd.Flags().IntVar(&q.Limit, "limit", core.DefaultPageLimit, "maximum number of results")
	cmd.Flags().StringVar(&q.Cursor, "cursor", "", "continue an earlier list")
}
