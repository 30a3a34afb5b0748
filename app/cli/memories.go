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

func (p *program) memories() *cobra.Command {
	cmd := &cobra.Command{
		Use: "memories", Short: "Keep facts and find them again",
		Long: "Facts that were asked to be kept. They live beside the conversations: no agent reads them.",
		Args: needsCommand, RunE: showHelp,
	}
	list, add, search, reindex := p.listMemories(), p.addMemory(), p.searchMemories(), p.reindexMemories()
	p.withJSON(list, add, search, reindex)
	cmd.AddCommand(list, add, search, p.deleteMemory(), reindex)
	return cmd
}

// userFlag adds --user.
func userFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("user", "", "only of this user")
}

func (p *program) listMemories() *cobra.Command {
	var q core.PageQuery
	cmd := &cobra.Command{Use: "list", Short: "List the memories, the newest first", Example: "  bobbin memories list --user ann", Args: noArguments}
	user := userFlag(cmd)
	cmd.Flags().IntVar(&q.Limit, "limit", core.DefaultPageLimit, "how many")
	cmd.Flags().StringVar(&q.Cursor, "cursor", "", "go on after an earlier list")
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
				fmt.Fprintf(p.Out, "no memories yet; this keeps one: %s memories add \"the inspection is on Friday\"\n", programName())
				return nil
			}
			w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "ID\tUSER\tCREATED\tMEMORY")
			for _, m := range page.Items {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s%s\n", m.ID, term.Line(m.UserID, 20), m.CreatedAt.Local().Format(time.DateTime), term.Line(m.Content, 60), stale(m))
			}
			if err := w.Flush(); err != nil {
				return err
			}
			if page.NextCursor != nil {
				fmt.Fprintf(p.Out, "more: %s memories list --cursor %s\n", programName(), *page.NextCursor)
			}
			return nil
		})
	}
	return cmd
}

// stale marks a memory that search does not find.
func stale(m core.Memory) string {
	if m.Stale {
		return "  (stale)"
	}
	return ""
}

func (p *program) addMemory() *cobra.Command {
	metadata := ""
	cmd := &cobra.Command{Use: "add <text>", Short: "Keep a memory", Example: "  bobbin memories add \"the inspection is on Friday\" --user ann", Args: someWords("what is to be kept?")}
	user := userFlag(cmd)
	cmd.Flags().Lookup("user").Usage = "whose it is"
	cmd.Flags().StringVar(&metadata, "metadata", "", "a JSON object to keep with it")
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

func (p *program) searchMemories() *cobra.Command {
	limit, least := 0, float32(0)
	cmd := &cobra.Command{Use: "search <text>", Short: "Find the memories that are nearest to a text", Example: "  bobbin memories search inspection --limit 3", Args: someWords("what is to be found?")}
	user := userFlag(cmd)
	cmd.Flags().IntVar(&limit, "limit", core.DefaultMemoryMatches, "how many")
	cmd.Flags().Float32Var(&least, "min-score", 0, "only those at least so near: -1 to 1")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		q := core.MemorySearch{Query: strings.Join(args, " "), Limit: limit}
		if cmd.Flags().Changed("min-score") {
			q.MinScore = &least
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
	fmt.Fprintf(p.Out, "%d searched by %s, which matches %s\n", found.Searched, found.EmbeddingModel, found.Matches)
	if found.Stale > 0 {
		fmt.Fprintf(p.Out, "%d stale were not searched; this makes them searchable: %s memories reindex\n", found.Stale, programName())
	}
	return nil
}

func (p *program) deleteMemory() *cobra.Command {
	cmd := &cobra.Command{Use: "delete <id>", Short: "Remove a memory for good", Example: "  bobbin memories delete 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243", Args: cobra.ArbitraryArgs}
	user := userFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return core.Errorf(core.ErrInvalid, "which memory? %s; %s memories list shows the ids", cmd.UseLine(), programName())
		}
		return p.withServer(cmd, func(ctx context.Context, s connection) error {
			return s.client.DeleteMemory(ctx, *user, core.MemoryID(args[0]))
		})
	}
	return cmd
}

func (p *program) reindexMemories() *cobra.Command {
	batch := 0
	cmd := &cobra.Command{
		Use: "reindex", Short: "Make stale memories searchable by the embedding model in use", Example: "  bobbin memories reindex",
		Long: "Embeds the memories of all owners that another embedding model embedded, or none. It goes through the\n" +
			"server if one runs, which serves meanwhile. It may be broken off and begun again: it goes on where it stopped.",
		Args: noArguments,
	}
	cmd.Flags().IntVar(&batch, "batch", core.DefaultReindexBatch, "how many at once")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return p.withServer(cmd, func(ctx context.Context, s connection) error {
			return p.reindexAll(ctx, s, core.Reindex{AllOwners: true, Limit: batch})
		})
	}
	return cmd
}

// reindexAll asks for one batch after the other and says how far it is.
func (p *program) reindexAll(ctx context.Context, s connection, q core.Reindex) error {
	embedded, failed := 0, 0
	for {
		done, err := s.client.ReindexMemories(ctx, q)
		if err != nil {
			if embedded > 0 && !p.json {
				fmt.Fprintf(p.Out, "%d embedded so far; begin again to go on\n", embedded)
			}
			return err
		}
		embedded, failed = embedded+done.Embedded, failed+done.Failed
		if done.NextCursor == nil && p.json {
			done.Embedded, done.Failed = embedded, failed
			return p.printJSON(done)
		}
		if done.NextCursor == nil {
			fmt.Fprintf(p.Out, "%d embedded by %s, %d refused by it, %d stale\n", embedded, done.EmbeddingModel, failed, done.Remaining)
			return nil
		}
		fmt.Fprintf(p.aside(), "%d embedded, %d to go\n", embedded, max(done.Remaining-failed, 0))
		q.Cursor = *done.NextCursor
	}
}

// someWords wants a text after the command.
func someWords(question string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if strings.TrimSpace(strings.Join(args, "")) != "" {
			return nil
		}
		return core.Errorf(core.ErrInvalid, "%s %s", question, cmd.UseLine())
	}
}
