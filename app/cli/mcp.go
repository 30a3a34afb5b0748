package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
	"bobbin/app/ops"
)

func (p *program) mcpCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "mcp", Short: "List MCP servers and their tools", Args: rejectUnknownCommand, RunE: showHelp}
	cmd.AddCommand(p.listMCPCommand())
	return cmd
}

// maxDescriptionWidth is the maximum width of a tool's description in `mcp list`.
const maxDescriptionWidth = 80

func (p *program) listMCPCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list [server]", Short: "List the MCP servers of the files, or the tools of one",
		Long: "Connects to the MCP servers that files describe (docs/TOOLS.md), which starts those with a command,\n" +
			"and lists them, or the tools of one. It needs no Bobbin server. The exit code is 1 if a server\n" +
			"cannot be reached.",
		Example: "  bobbin mcp list --tools-allow mcp\n  bobbin mcp list files", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, _, err := p.loadServerSettings(cmd)
			if err != nil {
				return err
			}
			name := ""
			if len(args) > 0 {
				name = args[0]
			}
			list, err := ops.MCPServers(cmd.Context(), cfg, name)
			if err != nil {
				return err
			}
			if err := p.showServers(list, name != ""); err != nil {
				return err
			}
			for _, s := range list {
				if s.Problem != "" {
					return &silentError{"a server cannot be reached"}
				}
			}
			return nil
		},
	}
	p.withJSON(cmd)
	return cmd
}

// showServers prints the servers, or the tools of one.
func (p *program) showServers(list []ops.ToolSource, one bool) error {
	if p.json {
		return p.printJSON(core.Page[ops.ToolSource]{Items: list})
	}
	if len(list) == 0 {
		fmt.Fprintln(p.Out, "no file describes an MCP server (docs/TOOLS.md)")
		return nil
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	switch {
	case !one:
		fmt.Fprintln(w, "SERVER\tTOOLS\tSTATE\tFROM")
		for _, s := range list {
			state := "connected"
			if s.Problem != "" {
				state = term.Line(s.Problem, 0)
			}
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", s.Name, len(s.Tools), state, term.Clean(s.File))
		}
	case list[0].Problem != "":
		fmt.Fprintf(w, "%s cannot be reached: %s\n", list[0].Name, term.Line(list[0].Problem, 0))
	default:
		fmt.Fprintln(w, "TOOL\tAPPROVAL\tDESCRIPTION")
		for _, t := range list[0].Tools {
			fmt.Fprintf(w, "%s\t%s\t%s\n", t.Name, t.Approval, term.Line(t.Description, maxDescriptionWidth))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, s := range list {
		for _, note := range s.Notes {
			fmt.Fprintf(p.Err, "%s: %s\n", s.Name, term.Line(note, 0))
		}
	}
	return nil
}
