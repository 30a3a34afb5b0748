package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bobbin/app/cli/term"
)

// maxHelpWidth is the width of help that is not written to a terminal.
const maxHelpWidth = 100

// printHelp prints the help of a command in lines that fit the terminal. The flags common to
// all commands, which are the settings, are in the help of the program itself.
func (p *program) printHelp(cmd *cobra.Command) {
	width, _ := p.terminalSize()
	if width == 0 {
		width = maxHelpWidth
	}
	out := &strings.Builder{}
	about := cmd.Long
	if about == "" {
		about = cmd.Short
	}
	for i, paragraph := range strings.Split(about, "\n\n") {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, term.Wrap(strings.ReplaceAll(paragraph, "\n", " "), width, ""))
	}
	fmt.Fprintf(out, "\nUsage:\n%s\n", term.Wrap("  "+usageLine(cmd), width, "    "))
	if cmd.HasExample() {
		fmt.Fprintf(out, "\nExamples:\n%s\n", strings.TrimRight(cmd.Example, "\n"))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintln(out, "\nAvailable Commands:")
		var lines [][2]string
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() || c.Name() == "help" {
				lines = append(lines, [2]string{c.Name(), c.Short})
			}
		}
		writePairs(out, lines, width)
	}
	flags := pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	if cmd.HasParent() {
		flags.AddFlagSet(cmd.LocalNonPersistentFlags())
	}
	cmd.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if p.helpAll || !cmd.HasParent() && slices.Contains([]string{"addr", "config", "data-dir", "database-url", "help-all", "key", "url"}, f.Name) {
			all := *f
			all.Hidden = false
			flags.AddFlag(&all)
		}
	})
	if usages := flagUsages(flags, width); usages != "" {
		fmt.Fprintf(out, "\nFlags:\n%s", usages)
	}
	switch {
	case !cmd.HasParent():
		fmt.Fprintf(out, "\n%s\n", term.Wrap("Use "+cmd.Name()+" <command> --help for more about a command. Every setting is also available as a flag: see --help-all and docs/CONFIGURATION.md.", width, ""))
	case !p.helpAll:
		fmt.Fprintf(out, "\n%s\n", term.Wrap("Every setting is also available as a flag: see --help-all.", width, ""))
	}
	fmt.Fprint(p.Out, out.String())
}

// narrowWidth is the width below which flags and their descriptions do not fit side by side.
const narrowWidth = 70

// flagUsages lists flags, one a line, with their descriptions beside or below them.
func flagUsages(flags *pflag.FlagSet, width int) string {
	if width >= narrowWidth {
		return flags.FlagUsagesWrapped(width - 1)
	}
	out := &strings.Builder{}
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, meaning := pflag.UnquoteUsage(f)
		fmt.Fprintf(out, "  %s\n", strings.TrimSpace("--"+f.Name+" "+value))
		fmt.Fprintln(out, term.Wrap("    "+meaning, width, "    "))
	})
	return out.String()
}

// usageLine returns how to call a command.
func usageLine(cmd *cobra.Command) string {
	if cmd.HasAvailableSubCommands() && !strings.Contains(cmd.Use, "<") { // the others do something without a subcommand
		return cmd.CommandPath() + " <command>"
	}
	return cmd.UseLine()
}

// writePairs prints names with their descriptions beside them.
func writePairs(out io.Writer, lines [][2]string, width int) {
	longest := 0
	for _, line := range lines {
		longest = max(longest, len(line[0]))
	}
	for _, line := range lines {
		fmt.Fprintln(out, term.Wrap(fmt.Sprintf("  %-*s  %s", longest, line[0], line[1]), width, strings.Repeat(" ", longest+4)))
	}
}
