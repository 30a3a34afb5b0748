package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	operations "bobbin/app/api/ops"
	"bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/datadir"
	"bobbin/app/eval"
	"bobbin/app/ops"
)

// maxHelpWidth is the width of help that is not written to a terminal.
const maxHelpWidth = 100

// fitHelp prepares cobra's help of a command: its lines fit the terminal, and the flags of all commands, which are the
// settings, are in it with --help-all; the program itself has a few of them.
func (p *program) fitHelp(cmd *cobra.Command) {
	width, _ := p.terminalSize()
	width = cmp.Or(width, maxHelpWidth)
	paragraphs := strings.Split(cmp.Or(cmd.Long, cmd.Short), "\n\n")
	for i, text := range paragraphs {
		paragraphs[i] = term.Wrap(strings.ReplaceAll(text, "\n", " "), width, "")
	}
	cmd.Long = strings.Join(paragraphs, "\n\n")
	shown := []string{"addr", "config", "data-dir", "database-url", "help-all", "key", "url"}
	cmd.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		f.Hidden = !p.helpAll && (cmd.HasParent() || !slices.Contains(shown, f.Name))
	})
	wrapped := fmt.Sprintf(".FlagUsagesWrapped %d", width-1)
	cmd.SetUsageTemplate(strings.ReplaceAll(cmd.UsageTemplate(), ".FlagUsages", wrapped) +
		"\nEach setting is a flag, too: see --help-all and docs/CONFIGURATION.md.\n")
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

// completionTimeout bounds how long a shell waits for completions.
const completionTimeout = 500 * time.Millisecond

// completeSessions completes the ids of recent sessions of a running server.
func (p *program) completeSessions(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if !strings.HasSuffix(cmd.Use, "…") && !strings.Contains(cmd.Use, "<id>…") && len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return p.completeIDs(cmd, begun, func(ctx context.Context, c *client.Client) (offers []string, err error) {
		page, err := client.Call(ctx, c, operations.ListSessions, core.SessionQuery{PageQuery: core.PageQuery{Limit: 50}})
		for _, it := range page.Items {
			offers = append(offers, fmt.Sprintf("%s\t%s, %s", it.ID, cmp.Or(term.Line(it.Title, maxTitle), "untitled"), term.Pluralize(it.MessageCount, "message")))
		}
		return offers, err
	})
}

// completeRuns completes the ids of recent runs.
func (p *program) completeRuns(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return p.completeIDs(cmd, begun, func(ctx context.Context, c *client.Client) (offers []string, err error) {
		page, err := client.Call(ctx, c, operations.ListAllRuns, recentRuns(50))
		for _, r := range page.Items {
			id, text := describeRun(r)
			offers = append(offers, id+"\t"+text)
		}
		return offers, err
	})
}

// completeIDs completes ids that a running server lists.
func (p *program) completeIDs(cmd *cobra.Command, begun string, list func(context.Context, *client.Client) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	const nothing = cobra.ShellCompDirectiveNoFileComp
	cfg, _, err := p.loadFolderSettings(cmd)
	if err != nil {
		return nil, nothing
	}
	running, ok := datadir.Running(cfg.DataDir)
	if !ok {
		return nil, nothing
	}
	ctx, cancel := context.WithTimeout(cmp.Or(cmd.Context(), context.Background()), completionTimeout) // completion may have none
	defer cancel()
	var offers []string
	err = p.withRunning(ctx, cfg.DataDir, running, func(ctx context.Context, s connection) (err error) { offers, err = list(ctx, s.client); return err })
	if err != nil {
		return nil, nothing
	}
	return slices.DeleteFunc(offers, func(offer string) bool { return !strings.HasPrefix(offer, begun) }), nothing | cobra.ShellCompDirectiveKeepOrder
}

// completeAgents completes the names of the agents of the data folder.
func (p *program) completeAgents(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	const nothing = cobra.ShellCompDirectiveNoFileComp
	cfg, _, err := p.loadFolderSettings(cmd)
	if err != nil || len(args) > 0 {
		return nil, nothing
	}
	loaded, err := ops.LoadAgents(cfg)
	if err != nil {
		return nil, nothing
	}
	var offers []string
	for _, a := range loaded.Catalog.List() {
		if strings.HasPrefix(a.Name, begun) {
			offers = append(offers, a.Name+"\t"+term.Line(a.Description, 60))
		}
	}
	return offers, nothing
}

// flagWords returns the words that flags take, as they are checked.
func flagWords() map[string][]string {
	enum := func(of any, field string) []string {
		f, _ := reflect.TypeOf(of).FieldByName(field)
		return strings.Split(f.Tag.Get("enum"), ",")
	}
	words := map[string][]string{
		"sample": eval.SampleNames(), "policy": slices.Concat(eval.Policies(), []string{"all"}),
		"format": enum(operations.SessionExport{}, "Format"), "role": enum(core.SearchQuery{}, "Role"), "sort": enum(core.SearchQuery{}, "Sort"),
	}
	for _, k := range config.Keys() {
		if k.Words != "" {
			words[k.Flag()] = strings.Split(k.Words, ",")
		}
	}
	return words
}

// completeFlags completes ids of sessions, names of agents and fixed words in flags.
func (p *program) completeFlags(cmd *cobra.Command) {
	known := map[string]cobra.CompletionFunc{"session": p.completeSessions, "agent": p.completeAgents, "default-agent": p.completeAgents}
	for flag, words := range flagWords() {
		known[flag] = cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	}
	for flag, complete := range known {
		if cmd.Flags().Lookup(flag) != nil || cmd.PersistentFlags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
				return complete(cmd, nil, begun)
			}) // fails only for an unknown or repeated flag
		}
	}
	for _, c := range cmd.Commands() {
		p.completeFlags(c)
	}
}
