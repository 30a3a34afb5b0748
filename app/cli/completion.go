package cli

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	operations "bobbin/app/api/ops"
	"bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/datadir"
	"bobbin/app/eval"
	"bobbin/app/ops"
)

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
			offers = append(offers, fmt.Sprintf("%s\t%s", r.ID, describeRun(r)))
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
	s, err := p.connectLocal(cfg.DataDir, running)
	if err != nil {
		return nil, nothing
	}
	ctx, cancel := context.WithTimeout(cmp.Or(cmd.Context(), context.Background()), completionTimeout) // completion may have none
	defer cancel()
	offers, err := list(ctx, s.client)
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
	agents, err := ops.Agents(cfg)
	if err != nil {
		return nil, nothing
	}
	var offers []string
	for _, a := range agents {
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
	return map[string][]string{
		"sample": eval.SampleNames(), "policy": slices.Concat(eval.Policies(), []string{"all"}), "log-level": config.LogLevels(), "log-format": config.LogFormats(),
		"format": enum(operations.SessionExport{}, "Format"), "role": enum(core.SearchQuery{}, "Role"), "sort": enum(core.SearchQuery{}, "Sort"), "by": enum(core.UsageQuery{}, "GroupBy"),
	}
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
