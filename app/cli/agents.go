package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	operations "bobbin/app/api/ops"
	"bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/datadir"
	"bobbin/app/ops"
)

func (p *program) reloadAgentsCommand() *cobra.Command {
	return p.withJSON(&cobra.Command{
		Use: "reload", Short: "Reload the agent files of the running server",
		Long: "Makes the server that runs on the data folder read its agent files again, and prints the\n" +
			"result for each file. Active runs keep the agent that they started with; later runs use the\n" +
			"new one. If a file is broken, its agent stays as it was and the exit code is 1.\n\n" +
			"Each replica has its own files: run the command on each machine.",
		Example: "  bobbin agents reload", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, _, err := p.loadFolderSettings(cmd)
			if err != nil {
				return err
			}
			running, ok := datadir.Running(cfg.DataDir)
			if !ok {
				return core.Errorf(core.ErrNotFound, "no server is running on %s; servers read the agent files when they start", cfg.DataDir)
			}
			return p.withRunning(cmd.Context(), cfg.DataDir, running, func(ctx context.Context, s connection) error {
				page, err := client.Call(ctx, s.client, operations.ReloadAgents, struct{}{})
				if err != nil {
					return err
				}
				return printFiles(p, page, "CHANGE|NAME|VERSION", "; what they describe stays as it was", func(f core.AgentFile) ([]any, []string) {
					return []any{f.File, f.Change, cmp.Or(f.Agent, f.Tool), f.Version}, f.Problems
				})
			})
		},
	})
}

// printFiles prints a line for each file, whose cells and problems describe returns; it returns an error, with the
// consequence in it, if one is broken.
func printFiles[T any](p *program, page core.Page[T], titles, consequence string, describe func(T) ([]any, []string)) error {
	broken := 0
	var problems []string
	for _, f := range page.Items {
		if _, found := describe(f); len(found) > 0 {
			broken++
			problems = append(problems, found...)
		}
	}
	err := printList(p, page, nil, list[T]{
		none: "there are no agent files; the built-in agents do not need any", titles: "FILE|" + titles,
		cells: func(f T) []any { cells, _ := describe(f); return cells },
	})
	if err == nil && broken > 0 {
		err = core.Errorf(core.ErrInvalid, "%s%s\n  %s", term.Pluralize(broken, "broken file"), consequence, strings.Join(problems, "\n  "))
	}
	return err
}

// agentFiles opens the agent files with the settings of the server that runs on the data folder, else
// those of this command, and with its keys.
func (p *program) agentFiles(cmd *cobra.Command) (*ops.AgentFiles, error) {
	cfg, _, err := p.loadServerSettings(cmd)
	if err != nil {
		return nil, err
	}
	return ops.OpenAgentFiles(cmd.Context(), cfg)
}

// maxSettingWidth is the maximum width of a value in `agents show`; --json prints all of it.
const maxSettingWidth = 60

func (p *program) showAgentCommand() *cobra.Command {
	return p.withJSON(&cobra.Command{
		Use: "show <name>", Short: "Print every setting of an agent, its value and where it comes from",
		Long: "Prints every key of an agent's file (docs/AGENTS.md), its effective value, and where it comes from,\n" +
			"and the tools that files describe (docs/TOOLS.md). It needs no server, but connects to the servers\n" +
			"of tools. Long values are shortened; --json prints them whole.",
		Example: "  bobbin agents show assistant", Args: requireOne("agent", "bobbin agents list shows their names"),
		ValidArgsFunction: p.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := p.agentFiles(cmd)
			if err != nil {
				return err
			}
			list, err := files.Settings(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			for i := range list {
				if !p.json {
					list[i].Value = term.Line(list[i].Value, maxSettingWidth)
				}
			}
			return p.printSettings(list)
		},
	})
}

func (p *program) checkAgentsCommand() *cobra.Command {
	return p.withJSON(&cobra.Command{
		Use: "check [file or folder]...", Aliases: []string{"list"}, Short: "Check agent files without a server, and list the agents (also: list)",
		Long: "Reads agent files as a server would, by default those of agents_dir beside the built-in agents, and the files\n" +
			"of tools beside it, and prints their errors with file, line and column. The exit code is 1 if a file has an error.\n" +
			"An agent whose model cannot be used here, for example because its key is missing, is only reported.",
		Example: "  bobbin agents check\n  bobbin agents check agents/support.yaml",
		RunE: func(cmd *cobra.Command, paths []string) error {
			files, err := p.agentFiles(cmd)
			if err != nil {
				return err
			}
			list, err := files.Check(paths)
			if err != nil {
				return err
			}
			return printFiles(p, core.Page[ops.AgentState]{Items: list}, "NAME|MODEL|RESULT", "", func(f ops.AgentState) ([]any, []string) {
				state := "ok" // whether it can be used, and if not, or not with all of its models, why
				switch {
				case len(f.Problems) > 0:
					state = "broken"
				case !f.Usable:
					state += ", but it cannot be used: " + f.Reason
				case len(f.Warnings) > 0:
					state += ", but " + strings.Join(f.Warnings, "; ")
				}
				return []any{cmp.Or(f.File, "built in"), cmp.Or(f.Agent, f.Tool), f.Model, state}, f.Problems
			})
		},
	})
}

// maxDescriptionWidth is the maximum width of a tool's description in `mcp list`; --json prints all of it.
const maxDescriptionWidth = 80

func (p *program) listMCPCommand() *cobra.Command {
	return p.withJSON(&cobra.Command{
		Use: "list", Short: "List the tools of the MCP servers of the files",
		Long: "Connects to the MCP servers that files describe (docs/TOOLS.md), which starts those with a command,\n" +
			"and lists their tools. It needs no Bobbin server. The exit code is 1 if a server cannot be reached.",
		Example: "  bobbin mcp list --tools-allow mcp", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, _, err := p.loadServerSettings(cmd)
			if err != nil {
				return err
			}
			servers, err := ops.MCPServers(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			var rows [][]any
			broken := false
			for _, s := range servers {
				if broken = broken || s.Problem != ""; s.Problem != "" || len(s.Tools) == 0 {
					rows = append(rows, []any{s.Name, "", cmp.Or(s.Problem, "it has no tools"), s.File})
				}
				for _, t := range s.Tools {
					rows = append(rows, []any{t.Name, t.Approval, term.Line(t.Description, maxDescriptionWidth), s.File})
				}
				for _, note := range s.Notes {
					fmt.Fprintf(p.Err, "%s: %s\n", s.Name, term.Line(note, 0))
				}
			}
			if p.json {
				err = p.printJSON(core.Page[ops.ToolSource]{Items: servers})
			} else {
				err = printList(p, core.Page[[]any]{Items: rows}, nil, list[[]any]{
					none: "no file describes an MCP server (docs/TOOLS.md)", titles: "TOOL|APPROVAL|DESCRIPTION|FROM",
					cells: func(row []any) []any { return row },
				})
			}
			if err == nil && broken {
				err = &silentError{"a server cannot be reached"}
			}
			return err
		},
	})
}
