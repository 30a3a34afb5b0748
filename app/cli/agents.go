package cli

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
	"bobbin/app/core/datadir"
)

func (p *program) agentsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "agents", Short: "List, show, check and reload the agents", Args: rejectUnknownCommand, RunE: showHelp}
	cmd.AddCommand(p.listAgentsCommand(), p.showAgentCommand(), p.checkAgentsCommand(), p.reloadAgentsCommand())
	return cmd
}

func (p *program) reloadAgentsCommand() *cobra.Command {
	cmd := &cobra.Command{
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
			s, err := p.connectLocal(cfg.DataDir, running)
			if err != nil {
				return err
			}
			page, err := s.client.ReloadAgents(cmd.Context())
			if err != nil {
				return err
			}
			return printFiles(p, page, "CHANGE|NAME|VERSION", "; what they describe stays as it was", func(f core.AgentFile) ([]any, []string) {
				return []any{f.File, f.Change, cmp.Or(f.Agent, f.Tool), f.Version}, f.Problems
			})
		},
	}
	p.withJSON(cmd)
	return cmd
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
	err := printList(p, page, list[T]{
		none: "there are no agent files; the built-in agents do not need any", titles: "FILE|" + titles,
		cells: func(f T) []any { cells, _ := describe(f); return cells },
	})
	if err == nil && broken > 0 {
		err = core.Errorf(core.ErrInvalid, "%s%s\n  %s", term.Pluralize(broken, "broken file"), consequence, strings.Join(problems, "\n  "))
	}
	return err
}
