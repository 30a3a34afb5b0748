package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bobbin/app/cli/term"
)

// widest is how wide help is where nobody reads it on a terminal.
const widest = 100

// help prints what a command is for, in lines that fit the terminal. The flags of
// all commands, which are the settings, stand in the help of the program itself.
func (p *program) help(cmd *cobra.Command) {
	width, _ := p.terminal()
	if width == 0 {
		width = widest
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
		listCommands(out, cmd, width)
	}
	flags := cmd.LocalFlags()
	if cmd.HasParent() {
		flags = cmd.LocalNonPersistentFlags()
	}
	if usages := flagUsages(flags, width); usages != "" {
		fmt.Fprintf(out, "\nFlags:\n%s", usages)
	}
	switch {
	case !cmd.HasParent():
		fmt.Fprintf(out, "\n%s\n", term.Wrap("More about a command: "+cmd.Name()+" <command> --help. The settings are in docs/CONFIGURATION.md.", width, ""))
	default:
		fmt.Fprintf(out, "\n%s\n", term.Wrap("Every setting is a flag, too: "+cmd.Root().Name()+" --help lists them.", width, ""))
	}
	fmt.Fprint(p.Out, out.String())
}

// narrow is a terminal on which flags and what they mean do not fit side by side.
const narrow = 70

// flagUsages lists flags, each on its line, with what they mean beside or below.
func flagUsages(flags *pflag.FlagSet, width int) string {
	if width >= narrow {
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

// usageLine is how a command is called.
func usageLine(cmd *cobra.Command) string {
	if cmd.HasAvailableSubCommands() && !strings.Contains(cmd.Use, "<") { // others do something by themselves
		return cmd.CommandPath() + " <command>"
	}
	return cmd.UseLine()
}

// listCommands prints the commands of a group with what they are for.
func listCommands(out *strings.Builder, cmd *cobra.Command, width int) {
	commands := slices.DeleteFunc(slices.Clone(cmd.Commands()), func(c *cobra.Command) bool { return !c.IsAvailableCommand() && c.Name() != "help" })
	longest := 0
	for _, c := range commands {
		longest = max(longest, len(c.Name()))
	}
	for _, c := range commands {
		line := fmt.Sprintf("  %-*s  %s", longest, c.Name(), c.Short)
		fmt.Fprintln(out, term.Wrap(line, width, strings.Repeat(" ", longest+4)))
	}
}
