package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	operations "bobbin/app/api/ops"
	"bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/datadir"
	"bobbin/app/ops"
)

// completionTimeout bounds how long a shell waits for completions.
const completionTimeout = 500 * time.Millisecond

// completeSessions completes the ids of recent sessions of a running server.
func (p *program) completeSessions(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if !strings.HasSuffix(cmd.Use, "…") && !strings.Contains(cmd.Use, "<id>…") && len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
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
	page, err := client.Call(ctx, s.client, operations.ListSessions, core.SessionQuery{PageQuery: core.PageQuery{Limit: 50}})
	if err != nil {
		return nil, nothing
	}
	var offers []string
	for _, it := range page.Items {
		if strings.HasPrefix(string(it.ID), begun) {
			offers = append(offers, fmt.Sprintf("%s\t%s, %s", it.ID, cmp.Or(term.Line(it.Title, maxTitle), "untitled"), term.Pluralize(it.MessageCount, "message")))
		}
	}
	return offers, nothing | cobra.ShellCompDirectiveKeepOrder
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

// completeFlags completes ids of sessions and names of agents in flags.
func (p *program) completeFlags(cmd *cobra.Command) {
	for flag, complete := range map[string]cobra.CompletionFunc{"session": p.completeSessions, "agent": p.completeAgents, "default-agent": p.completeAgents} {
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
