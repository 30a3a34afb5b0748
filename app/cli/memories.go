package cli

import (
	"context"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

func (p *program) memoriesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "memories", Short: "List and delete stored facts",
		Long: "Stored facts. They are independent of the conversations: no agent reads them on its own. The operations\n" +
			"createMemory, searchMemories and reindexMemories of `bobbin api` do the rest.",
		Args: rejectUnknownCommand, RunE: showHelp,
	}
	list := p.listMemoriesCommand()
	p.withJSON(list)
	cmd.AddCommand(list, p.deleteMemoryCommand())
	return cmd
}

// userFlag adds the flag --user.
func userFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("user", "", "only memories of this user")
}

func (p *program) listMemoriesCommand() *cobra.Command {
	var q core.PageQuery
	cmd := &cobra.Command{Use: "list", Short: "List memories, newest first", Example: "  bobbin memories list --user ann", Args: noArguments}
	user := userFlag(cmd)
	addPageFlags(cmd, &q)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return p.withServer(cmd, func(ctx context.Context, s connection) error {
			page, err := s.client.Memories(ctx, *user, q)
			if err != nil {
				return err
			}
			return printList(p, page, list[core.Memory]{
				none:   "no memories yet; add one with: " + p.suggestCommand("api", "createMemory", "content=the inspection is on Friday"),
				titles: "ID|USER|CREATED|MEMORY",
				cells: func(m core.Memory) []any {
					return []any{m.ID, term.Line(m.UserID, 20), m.CreatedAt, term.Line(m.Content, 60) + staleMark(m)}
				},
				next: "memories list",
			})
		})
	}
	return cmd
}

// staleMark marks a memory that search cannot find.
func staleMark(m core.Memory) string {
	if m.Stale {
		return "  (stale)"
	}
	return ""
}

func (p *program) deleteMemoryCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "delete <id>", Short: "Delete a memory permanently", Example: "  bobbin memories delete 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243", Args: cobra.ArbitraryArgs}
	user := userFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return core.Errorf(core.ErrInvalid, "no memory given: %s; %s memories list shows the ids", cmd.UseLine(), programName())
		}
		return p.withServer(cmd, func(ctx context.Context, s connection) error {
			return s.client.DeleteMemory(ctx, *user, core.MemoryID(args[0]))
		})
	}
	return cmd
}
