package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

func (p *program) contextInstructionsCommand() *cobra.Command {
	var q core.PageQuery
	cmd := &cobra.Command{
		Use:   "instructions <id>",
		Short: "Show, add, edit and remove standing instructions",
		Long: "Shows what users set for the whole conversation (\"always answer in Dutch\"), newest first: what was\n" +
			"recognized in their messages and what was added by hand. What stands is in every prompt, word for word.",
		Example: "  bobbin context instructions 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243\n" +
			"  bobbin context instructions add 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 \"always answer in Dutch\"",
		Args: requireSessionID, ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withSession(cmd, args[0], func(ctx context.Context, s connection, id core.SessionID) error {
				return p.listInstructions(ctx, s, id, q)
			})
		},
	}
	addPageFlags(cmd, &q)
	add, edit := p.addInstructionCommand(), p.editInstructionCommand()
	p.withJSON(cmd, add, edit)
	cmd.AddCommand(add, edit, p.removeInstructionCommand())
	return cmd
}

func (p *program) listInstructions(ctx context.Context, s connection, id core.SessionID, q core.PageQuery) error {
	page, err := s.client.StandingInstructions(ctx, id, q)
	if err != nil {
		return err
	}
	if p.json {
		return p.printJSON(page)
	}
	if len(page.Items) == 0 {
		fmt.Fprintf(p.Out, "no standing instructions; add one with: %s\n", p.suggestCommand("context", "instructions", "add", string(id), "always answer in Dutch"))
		return nil
	}
	width, _ := p.terminalSize()
	term.DrawInstructions(p.Out, page.Items, width)
	p.printMore(page.NextCursor, "context instructions "+string(id))
	return nil
}

func (p *program) addInstructionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "add <id> <text>", Short: "Add a standing instruction",
		Example: "  bobbin context instructions add 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 \"always answer in Dutch\"",
		Args:    requireAtLeast(2, "text"), ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withSession(cmd, args[0], func(ctx context.Context, s connection, id core.SessionID) error {
				added, err := s.client.AddInstruction(ctx, id, strings.Join(args[1:], " "))
				return p.printInstruction(added, err)
			})
		},
	}
}

func (p *program) editInstructionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "edit <id> <instruction> <text>", Short: "Replace the text of a standing instruction",
		Long:    "Replaces the text of a standing instruction. The message in which it was recognized stays as it is.",
		Example: "  bobbin context instructions edit 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 01a1fd1b-d0a7-7c1e-b1f5-0c9a1d2e3f40 \"my budget is 500 €\"",
		Args:    requireAtLeast(3, "instruction and text"), ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withSession(cmd, args[0], func(ctx context.Context, s connection, id core.SessionID) error {
				edited, err := s.client.EditInstruction(ctx, id, core.InstructionID(args[1]), strings.Join(args[2:], " "))
				return p.printInstruction(edited, err)
			})
		},
	}
}

func (p *program) removeInstructionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "remove <id> <instruction>", Short: "Remove a standing instruction",
		Long:    "Removes a standing instruction. The message in which it was recognized stays: while the prompt has it, the model reads it there.",
		Example: "  bobbin context instructions remove 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 01a1fd1b-d0a7-7c1e-b1f5-0c9a1d2e3f40",
		Args:    requireSessionIDAnd("instruction", true), ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withSession(cmd, args[0], func(ctx context.Context, s connection, id core.SessionID) error {
				if err := s.client.RemoveInstruction(ctx, id, core.InstructionID(args[1])); err != nil {
					return err
				}
				fmt.Fprintln(p.Out, "removed")
				return nil
			})
		},
	}
}

// printInstruction prints the result of adding or editing one.
func (p *program) printInstruction(i core.StandingInstruction, err error) error {
	return p.printOrDraw(i, err, func(width, _ int) { term.DrawInstructions(p.Out, []core.StandingInstruction{i}, width) })
}

// requireAtLeast accepts a session's id and more arguments, n in all at least.
func requireAtLeast(n int, more string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return requireSessionID(cmd, args)
		case len(args) < n:
			return core.Errorf(core.ErrInvalid, "which %s? %s", more, cmd.UseLine())
		}
		return nil
	}
}
