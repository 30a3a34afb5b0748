package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"bobbin/app/core"
	"bobbin/app/eval"
)

// evalFlags are the flags of `bobbin eval context`.
type evalFlags struct {
	eval.Evaluation
	sample string
	list   bool
	policy []string
	facts  string
}

func (p *program) evalContextCommand() *cobra.Command {
	var f evalFlags
	cmd := &cobra.Command{
		Use:   "context <file|-> | --sample <name>",
		Short: "Replay a conversation through policies and measure the result",
		Long: "Replays a recorded conversation turn by turn as a server would process it, with the recorded answers\n" +
			"and tool results. It reports how large the prompts were, what summaries cost, what a provider's cache\n" +
			"could have read, and which facts are still available. It makes no network calls unless you name a model\n" +
			"for the summaries. It reads the files that `import` accepts, of Bobbin, OpenAI or LangChain.\n" +
			"Search gets the question about a fact, never the fact itself.",
		Example: "  bobbin eval context --sample coding --policy all\n" +
			"  bobbin eval context conversation.jsonl --policy window,budget --model claude-sonnet-4-5",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.list {
				return printList(p, core.Page[eval.Sample]{Items: eval.List()}, nil, list[eval.Sample]{
					titles: "NAME|WINDOW|ABOUT",
					cells:  func(s eval.Sample) []any { return []any{s.Name, core.Number(s.Window), s.About} },
				})
			}
			e, err := p.buildEvaluation(f, args)
			if err != nil {
				return err
			}
			cfg, logger, err := p.withLogger(p.loadSettings(cmd))
			if err != nil {
				return err
			}
			tell := p.progressPrinter()
			e.Progress = func(done, turns int) { tell(fmt.Sprintf("replaying … %d %%", done*100/turns)) }
			report, err := eval.Evaluate(cmd.Context(), cfg, logger, e)
			tell("")
			if err != nil {
				return err
			}
			if p.json {
				err = p.printJSON(report)
			} else {
				err = report.WriteTable(p.Out)
			}
			if err == nil && report.Failed() {
				return &silentError{"the conversation could not continue"}
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.sample, "sample", "", "replay the sample with this `name`")
	flags.BoolVar(&f.list, "list-samples", false, "list the samples")
	flags.StringSliceVar(&f.policy, "policy", nil, "`policies` to compare: "+strings.Join(eval.Policies(), ", ")+", or all (default: the agent's)")
	flags.StringVarP(&f.Model, "model", "m", "", "use the window and token counts of this `model`, without calling it (default: the agent's, else "+eval.EvaluationModel+")")
	flags.IntVar(&f.Window, "window", 0, "window in `tokens`, instead of the model's")
	flags.StringVar(&f.Summarizer, "summarizer", eval.SummarizerScripted, "scripted (offline), extractive (no model), or the `name` of a model to call")
	flags.StringVar(&f.Agent, "agent", "", "replay with the agent in this `file`")
	flags.StringVar(&f.facts, "facts", "", "look for the facts in this `file`: one per line, or a JSON list of {text, ask}")
	return p.withJSON(cmd)
}

// buildEvaluation returns what to replay, and how.
func (p *program) buildEvaluation(f evalFlags, args []string) (eval.Evaluation, error) {
	e := f.Evaluation
	switch {
	case len(args) > 0 && f.sample != "":
		return e, core.Errorf(core.ErrInvalid, "give either a file or --sample, not both")
	case f.sample != "":
		sample, data, err := eval.Get(f.sample)
		if err != nil {
			return e, err
		}
		e.Source, e.Data, e.Format = sample.Name, data, core.ImportLines
		if e.Window == 0 && e.Model == "" && e.Agent == "" {
			e.Window = sample.Window
		}
	case len(args) == 0:
		return e, core.Errorf(core.ErrInvalid, "no conversation given: a file, - for the standard input, or --sample with one of %s", strings.Join(eval.SampleNames(), ", "))
	default:
		h, err := p.openHistory(args[0])
		if err != nil {
			return e, err
		}
		defer h.file.Close()
		e.Source, e.Format = "standard input", h.format
		if e.Data, err = io.ReadAll(h.body); err != nil {
			return e, err
		}
		if args[0] != "-" {
			e.Source = filepath.Base(args[0])
		}
	}
	e.Policies = f.policy
	if slices.Equal(f.policy, []string{"all"}) {
		e.Policies = eval.Policies()
	}
	if f.facts != "" {
		var err error
		if e.Facts, err = os.ReadFile(f.facts); err != nil {
			return e, core.Errorf(core.ErrInvalid, "--facts: %v", err)
		}
	}
	return e, nil
}
