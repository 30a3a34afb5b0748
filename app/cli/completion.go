package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app"
	"bobbin/app/cli/term"
	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/folder"
)

// completionTime is how long a shell waits for what it may offer.
const completionTime = 500 * time.Millisecond

// completeSessions offers the ids of the newest sessions of a server that runs.
func (p *program) completeSessions(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	const nothing = cobra.ShellCompDirectiveNoFileComp
	if !strings.HasSuffix(cmd.Use, "…") && !strings.Contains(cmd.Use, "<id>…") && len(args) > 0 {
		return nil, nothing
	}
	cfg, _, err := p.load(cmd)
	if err != nil {
		return nil, nothing
	}
	running, ok := folder.Running(cfg.DataDir)
	if !ok {
		return nil, nothing
	}
	s, err := reach(cfg.DataDir, running)
	if err != nil {
		return nil, nothing
	}
	ctx, cancel := context.WithTimeout(commandContext(cmd), completionTime)
	defer cancel()
	page, err := s.client.Sessions(ctx, core.SessionQuery{PageQuery: core.PageQuery{Limit: 50}})
	if err != nil {
		return nil, nothing
	}
	var offers []string
	for _, it := range page.Items {
		if strings.HasPrefix(string(it.ID), begun) {
			offers = append(offers, fmt.Sprintf("%s\t%s, %s", it.ID, term.Line(it.Title, 40), count(int64(it.MessageCount), "message")))
		}
	}
	return offers, nothing | cobra.ShellCompDirectiveKeepOrder
}

// completeAgents offers the names of the agents of this folder.
func (p *program) completeAgents(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	const nothing = cobra.ShellCompDirectiveNoFileComp
	cfg, _, err := p.load(cmd)
	if err != nil || len(args) > 0 {
		return nil, nothing
	}
	agents, err := app.Agents(cfg)
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

// completeFlags offers what some flags take.
func (p *program) completeFlags(root *cobra.Command) {
	offer := func(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
		if cmd.Flags().Lookup(flag) != nil || cmd.PersistentFlags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, f) // fails only for a flag that is not there, or twice
		}
	}
	session := func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return p.completeSessions(cmd, nil, begun)
	}
	agent := func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return p.completeAgents(cmd, nil, begun)
	}
	words := func(list ...string) cobra.CompletionFunc {
		return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
	}
	offer(root, "default-agent", agent)
	offer(root, "log-level", words("debug", "info", "warn", "error"))
	offer(root, "log-format", words("auto", "text", "json"))
	for _, flag := range []string{"data-dir", "agents-dir"} {
		offer(root, flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		})
	}
	offer(root, "config", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
	})
	var each func(cmd *cobra.Command)
	each = func(cmd *cobra.Command) {
		offer(cmd, "session", session)
		offer(cmd, "agent", agent)
		offer(cmd, "policy", words(contextwindow.PresetNames()...))
		offer(cmd, "role", words("user", "assistant", "tool", "system"))
		for _, c := range cmd.Commands() {
			each(c)
		}
	}
	each(root)
}

// commandContext is the context of a command; completion may have none.
func commandContext(cmd *cobra.Command) context.Context {
	if ctx := cmd.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}
