package cli

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
	"bobbin/app/ops"
)

// maxDescriptionWidth is the maximum width of a tool's description in `mcp list`.
const maxDescriptionWidth = 80

func (p *program) listMCPCommand() *cobra.Command {
	return p.withJSON(&cobra.Command{
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
	})
}

// showServers prints the servers, or the tools of one.
func (p *program) showServers(servers []ops.ToolSource, one bool) error {
	page := core.Page[ops.ToolSource]{Items: servers}
	var err error
	switch {
	case p.json:
		return p.printJSON(page)
	case one && servers[0].Problem != "":
		fmt.Fprintf(p.Out, "%s cannot be reached: %s\n", servers[0].Name, servers[0].Problem)
	case one:
		err = printList(p, core.Page[ops.ListedTool]{Items: servers[0].Tools}, nil, list[ops.ListedTool]{
			none: servers[0].Name + " has no tools", titles: "TOOL|APPROVAL|DESCRIPTION",
			cells: func(t ops.ListedTool) []any {
				return []any{t.Name, t.Approval, term.Line(t.Description, maxDescriptionWidth)}
			},
		})
	default:
		err = printList(p, page, nil, list[ops.ToolSource]{
			none: "no file describes an MCP server (docs/TOOLS.md)", titles: "SERVER|TOOLS|STATE|FROM",
			cells: func(s ops.ToolSource) []any {
				return []any{s.Name, len(s.Tools), cmp.Or(s.Problem, "connected"), s.File}
			},
		})
	}
	for _, s := range servers {
		for _, note := range s.Notes {
			fmt.Fprintf(p.Err, "%s: %s\n", s.Name, term.Line(note, 0))
		}
	}
	return err
}
