package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bobbin/app/core"
)

// noArguments refuses everything after a command.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return core.Errorf(core.ErrInvalid, "%s takes flags only, not %q; see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
}

// atMost allows so many arguments.
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= n {
			return nil
		}
		return core.Errorf(core.ErrInvalid, "too many words, from %q on; it is: %s", args[n], cmd.UseLine())
	}
}

// oneID wants a session's id.
func oneID(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return core.Errorf(core.ErrInvalid, "which session? %s; %s sessions list shows the ids", cmd.UseLine(), programName())
}

// idAnd wants a session's id and, if needed, one more word.
func idAnd(more string, needed bool) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return oneID(cmd, args)
		case len(args) > 2:
			return atMost(2)(cmd, args)
		case len(args) == 1 && needed:
			return core.Errorf(core.ErrInvalid, "which %s? %s", more, cmd.UseLine())
		}
		return nil
	}
}

// needsCommand refuses what is no command of a group of them.
func needsCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, c := range cmd.Commands() {
		known = append(known, c.Name())
	}
	text := fmt.Sprintf("there is no command %s %s", cmd.CommandPath(), args[0])
	if near := core.Nearest(args[0], known); near != "" {
		return core.Errorf(core.ErrInvalid, "%s, do you mean %s %s?", text, cmd.CommandPath(), near)
	}
	return core.Errorf(core.ErrInvalid, "%s; see %s --help", text, cmd.CommandPath())
}

// showHelp is what a group of commands does when none is named.
func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// flagError says what is wrong with a flag in the user's words.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var bad *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown.GetSpecifiedName())
	case errors.As(err, &bad) && bad.GetFlag().Value.Type() == "int":
		return core.Errorf(core.ErrInvalid, "--%s: %q is not a whole number", bad.GetFlag().Name, bad.GetValue())
	default:
		return err
	}
}

func unknownFlag(cmd *cobra.Command, name string) error {
	if len(name) == 1 {
		return core.Errorf(core.ErrInvalid, "there is no flag -%s; see %s --help", name, cmd.CommandPath())
	}
	var known []string
	for _, set := range []*pflag.FlagSet{cmd.Flags(), cmd.InheritedFlags()} {
		set.VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
	}
	if near := core.Nearest(name, known); near != "" {
		return core.Errorf(core.ErrInvalid, "there is no flag --%s, do you mean --%s?", name, near)
	}
	return core.Errorf(core.ErrInvalid, "there is no flag --%s; see %s --help", name, cmd.CommandPath())
}

// oneWord wants one argument; ask says what is missing.
func oneWord(ask string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return core.Errorf(core.ErrInvalid, "%s: %s", ask, cmd.UseLine())
		case len(args) > 1:
			return core.Errorf(core.ErrInvalid, "too many words, from %q on; it is: %s", args[1], cmd.UseLine())
		default:
			return nil
		}
	}
}
