package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

func (p *program) memoriesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "memories", Short: "Store facts and search them",
		Long: "Stored facts. They are independent of the conversations: no agent reads them on its own.",
		Args: rejectUnknownCommand, RunE: showHelp,
	}
	list, add, search, reindex := p.listMemoriesCommand(), p.addMemoryCommand(), p.searchMemoriesCommand(), p.reindexMemoriesCommand()
	p.withJSON(list, add, search, reindex)
	cmd.AddCommand(list, add, search, p.deleteMemoryCommand(), reindex)
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
			if p.json {
				return p.printJSON(page)
			}
			if len(page.Items) == 0 {
				fmt.Fprintf(p.Out, "no memories yet; add one with: %s\n", p.suggestCommand("memories", "add", "the inspection is on Friday"))
				return nil
			}
			w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "ID\tUSER\tCREATED\tMEMORY")
			for _, m := range page.Items {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s%s\n", m.ID, term.Line(m.UserID, 20), m.CreatedAt.Local().Format(time.DateTime), term.Line(m.Content, 60), staleMark(m))
			}
			if err := w.Flush(); err != nil {
				return err
			}
			p.printMore(page.NextCursor, "memories list")
			return nil
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

func (p *program) addMemoryCommand() *cobra.Command {
	metadata := ""
	cmd := &cobra.Command{Use: "add <text>", Short: "Create a memory", Example: "  bobbin memories add \"the inspection is on Friday\" --user ann", Args: requireText("no text given:")}
	user := userFlag(cmd)
	cmd.Flags().Lookup("user").Usage = "the user that the memory belongs to"
	cmd.Flags().StringVar(&metadata, "metadata", "", "a JSON object to store with it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if metadata != "" && !json.Valid([]byte(metadata)) {
			return core.Errorf(core.ErrInvalid, "--metadata must be a JSON object, such as '{\"source\": \"mail\"}'")
		}
		return p.withServer(cmd, func(ctx context.Context, s connection) error {
			m := core.Memory{UserID: *user, Content: strings.Join(args, " ")}
			if metadata != "" {
				m.Metadata = json.RawMessage(metadata)
			}
			saved, err := s.client.CreateMemory(ctx, m)
			if err != nil {
				return err
			}
			if p.json {
				return p.printJSON(saved)
			}
			fmt.Fprintln(p.Out, saved.ID)
			if saved.Notice != "" {
				fmt.Fprintln(p.Err, saved.Notice)
			}
			return nil
		})
	}
	return cmd
}

func (p *program) searchMemoriesCommand() *cobra.Command {
	limit, minScore := 0, float32(0)
	cmd := &cobra.Command{Use: "search <text>", Short: "Find the memories most similar to a text", Example: "  bobbin memories search inspection --limit 3", Args: requireText("no search text given:")}
	user := userFlag(cmd)
	cmd.Flags().IntVar(&limit, "limit", core.DefaultMemoryMatches, "maximum number of results")
	cmd.Flags().Float32Var(&minScore, "min-score", 0, "minimum similarity, -1 to 1")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		q := core.MemorySearch{Query: strings.Join(args, " "), Limit: limit}
		if cmd.Flags().Changed("min-score") {
			q.MinScore = &minScore
		}
		return p.withServer(cmd, func(ctx context.Context, s connection) error {
			found, err := s.client.SearchMemories(ctx, *user, q)
			if err != nil {
				return err
			}
			return p.showMatches(found)
		})
	}
	return cmd
}

func (p *program) showMatches(found core.MemoryMatches) error {
	if p.json {
		return p.printJSON(found)
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	for _, it := range found.Items {
		fmt.Fprintf(w, "%.3f\t%s\t%s\n", it.Score, it.Memory.ID, term.Line(it.Memory.Content, 80))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(p.Out, "searched %d with %s, which matches %s\n", found.Searched, found.EmbeddingModel, found.Matches)
	if found.Stale > 0 {
		fmt.Fprintf(p.Out, "%d stale memories were not searched; make them searchable with: %s\n", found.Stale, p.suggestCommand("memories", "reindex"))
	}
	return nil
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

func (p *program) reindexMemoriesCommand() *cobra.Command {
	batch := 0
	cmd := &cobra.Command{
		Use: "reindex", Short: "Embed stale memories with the current embedding model", Example: "  bobbin memories reindex",
		Long: "Embeds the memories of all owners that have no embedding by the current model. It uses a running server,\n" +
			"which keeps serving requests. You can interrupt the command and start it again: it resumes where it stopped.",
		Args: noArguments,
	}
	cmd.Flags().IntVar(&batch, "batch", core.DefaultReindexBatch, "memories per request")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return p.withServer(cmd, func(ctx context.Context, s connection) error {
			return p.reindexAll(ctx, s, core.Reindex{AllOwners: true, Limit: batch})
		})
	}
	return cmd
}

// reindexAll reindexes batch by batch and prints its progress.
func (p *program) reindexAll(ctx context.Context, s connection, q core.Reindex) error {
	embedded, failed := 0, 0
	for {
		done, err := s.client.ReindexMemories(ctx, q)
		if err != nil {
			if embedded > 0 && !p.json {
				fmt.Fprintf(p.Out, "%d embedded so far; run the command again to resume\n", embedded)
			}
			return err
		}
		embedded, failed = embedded+done.Embedded, failed+done.Failed
		if done.NextCursor == nil && p.json {
			done.Embedded, done.Failed = embedded, failed
			return p.printJSON(done)
		}
		if done.NextCursor == nil {
			fmt.Fprintf(p.Out, "%d embedded with %s, %d rejected, %d stale\n", embedded, done.EmbeddingModel, failed, done.Remaining)
			return nil
		}
		fmt.Fprintf(p.noticeWriter(), "%d embedded, %d remaining\n", embedded, max(done.Remaining-failed, 0))
		q.Cursor = *done.NextCursor
	}
}
