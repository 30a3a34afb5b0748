package cli

import (
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/eval"
)

// recallFlags are the flags of `bobbin eval recall`.
type recallFlags struct {
	eval.RecallEvaluation
	sample bool
	svg    string
}

func (p *program) evalRecallCommand() *cobra.Command {
	var f recallFlags
	cmd := &cobra.Command{
		Use:   "recall <file|-> | --sample",
		Short: "Ask questions about conversations and measure where their evidence is",
		Long: "Replays conversations under each policy in each window, and asks the questions of the file at the end.\n" +
			"It reports for how many of them a message that answers the question is in the prompt, is told by the\n" +
			"summary, or is among the first 1, 5 and 20 messages that search finds for the question, unchanged, and\n" +
			"how many search_history quotes. It makes no network calls unless you name a model for the summaries.",
		Example: "  bobbin eval recall --sample\n" +
			"  bobbin eval recall questions.json --policy all --window 8192,16384 --svg recall.svg",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return p.runRecall(cmd, f, args) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.sample, "sample", false, "ask the questions of the sample that comes with Bobbin")
	flags.StringSliceVar(&f.Policies, "policy", nil, "`policies` to compare: "+strings.Join(eval.EvaluationPolicies(), ", ")+", or all (default: the agent's)")
	flags.IntSliceVar(&f.Windows, "window", nil, "windows to compare, in `tokens` (default: the model's)")
	flags.StringSliceVar(&f.Recall, "recall", nil, "ways of `recall` to compare: auto, tool, off (default: the agent's)")
	flags.StringVarP(&f.Model, "model", "m", "", "use the window and token counts of this `model`, without calling it (default: the agent's, else "+eval.EvaluationModel+")")
	flags.StringVar(&f.Summarizer, "summarizer", eval.SummarizerScripted, "scripted (offline), extractive (no model), or the `name` of a model to call")
	flags.StringVar(&f.Agent, "agent", "", "replay with the agent in this `file`")
	flags.StringVar(&f.svg, "svg", "", "draw the shares to this `file`")
	p.withJSON(cmd)
	return cmd
}

// runRecall asks the questions and prints the report.
func (p *program) runRecall(cmd *cobra.Command, f recallFlags, args []string) error {
	e, err := p.buildRecall(f, args)
	if err != nil {
		return err
	}
	return p.showEvaluation(cmd, f.svg, func(cfg config.Config, logger *slog.Logger, show func(done, turns int)) (evaluationReport, error) {
		e.Progress = show
		return eval.EvaluateRecall(cmd.Context(), cfg, logger, e)
	})
}

// buildRecall returns what to ask, and how.
func (p *program) buildRecall(f recallFlags, args []string) (eval.RecallEvaluation, error) {
	e := f.RecallEvaluation
	switch {
	case len(args) > 0 && f.sample:
		return e, core.Errorf(core.ErrInvalid, "give either a file or --sample, not both")
	case f.sample:
		e.Source, e.Data = "sample", eval.RecallSample()
		if len(e.Windows) == 0 && e.Model == "" && e.Agent == "" {
			e.Windows = []int{eval.RecallSampleWindow}
		}
	case len(args) == 0:
		return e, core.Errorf(core.ErrInvalid, "no questions given: a file, - for the standard input, or --sample")
	default:
		h, err := p.readHistory(args[0])
		if err != nil {
			return e, err
		}
		e.Source, e.Data = "standard input", h.data
		if args[0] != "-" {
			e.Source = term.Clean(filepath.Base(args[0]))
		}
	}
	if slices.Equal(e.Policies, []string{"all"}) {
		e.Policies = eval.EvaluationPolicies()
	}
	return e, nil
}
