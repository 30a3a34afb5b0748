package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"bobbin/app"
	"bobbin/app/cli/term"
	"bobbin/app/core"
)

// evalFlags are what `bobbin eval context` is asked for.
type evalFlags struct {
	app.Evaluation
	sample string
	list   bool
	policy []string
	facts  string
	svg    string
}

func (p *program) eval() *cobra.Command {
	cmd := &cobra.Command{
		Use: "eval", Short: "Measure how contexts are managed", Args: needsCommand, RunE: showHelp,
	}
	cmd.AddCommand(p.evalContext())
	return cmd
}

func (p *program) evalContext() *cobra.Command {
	var f evalFlags
	cmd := &cobra.Command{
		Use:   "context <file|-> | --sample <name>",
		Short: "Replay a conversation through policies and see what comes of it",
		Long: "Replays a recorded conversation as a server would have it, turn by turn, with the recorded answers and\n" +
			"tool results, and reports how large the prompts were, what summaries cost, what a provider's cache could\n" +
			"have read, and which facts are still within reach. Nothing is called over the network, unless a model is\n" +
			"named to summarize. Files are those that `import` takes: of Bobbin, OpenAI or LangChain.",
		Example: "  bobbin eval context --sample coding --policy all --svg coding.svg\n" +
			"  bobbin eval context conversation.jsonl --policy window,budget --model claude-sonnet-4-5",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.list {
				return p.listSamples()
			}
			return p.evaluate(cmd, f, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.sample, "sample", "", "replay the sample of this `name`")
	flags.BoolVar(&f.list, "list-samples", false, "show which samples there are")
	flags.StringSliceVar(&f.policy, "policy", nil, "`policies` to compare: "+strings.Join(app.EvaluationPolicies(), ", ")+", or all (default: the agent's)")
	flags.StringVarP(&f.Model, "model", "m", "", "the `model` whose window and counting it is; it is not called (default: the agent's, else "+app.EvaluationModel+")")
	flags.IntVar(&f.Window, "window", 0, "the window in `tokens`, in place of the model's")
	flags.StringVar(&f.Summarizer, "summarizer", app.SummarizerScripted, "scripted (offline), extractive (no model), or the `name` of a model to call")
	flags.StringVar(&f.Agent, "agent", "", "the `file` of an agent to replay with")
	flags.StringVar(&f.facts, "facts", "", "a `file` of facts to look for, one a line or a JSON list")
	flags.StringVar(&f.svg, "svg", "", "draw the prompt sizes into this `file`")
	p.withJSON(cmd)
	return cmd
}

// evaluate replays, and shows the report.
func (p *program) evaluate(cmd *cobra.Command, f evalFlags, args []string) error {
	e, err := p.evaluation(f, args)
	if err != nil {
		return err
	}
	cfg, origins, err := p.load(cmd)
	if err != nil {
		return err
	}
	logger, err := p.logger(cfg, origins, true)
	if err != nil {
		return err
	}
	tell := p.progress()
	shown := -1
	e.Progress = func(done, turns int) {
		if percent := done * 100 / max(turns, 1); percent > shown {
			shown = percent
			tell(fmt.Sprintf("replaying … %d %%", percent))
		}
	}
	report, err := app.Evaluate(cmd.Context(), cfg, logger, e)
	tell("")
	if err != nil {
		return err
	}
	if f.svg != "" {
		if err := os.WriteFile(f.svg, report.SVG(), 0o644); err != nil { //nolint:gosec // a picture to be shown
			return core.Errorf(core.ErrInvalid, "--svg: %v", err)
		}
	}
	if p.json {
		err = p.printJSON(report)
	} else {
		err = report.WriteTable(p.Out)
	}
	if err == nil && report.Failed() {
		return &silentError{"the conversation could not go on"}
	}
	return err
}

// evaluation returns what is to be replayed, and how.
func (p *program) evaluation(f evalFlags, args []string) (app.Evaluation, error) {
	e := f.Evaluation
	switch {
	case len(args) > 0 && f.sample != "":
		return e, core.Errorf(core.ErrInvalid, "a file or --sample, not both")
	case f.sample != "":
		sample, data, err := app.EvaluationSample(f.sample)
		if err != nil {
			return e, err
		}
		e.Source, e.Data, e.Format = sample.Name, data, core.ImportLines
		if e.Window == 0 && e.Model == "" && e.Agent == "" {
			e.Window = sample.Window
		}
	case len(args) == 0:
		return e, core.Errorf(core.ErrInvalid, "which conversation? A file, - for the standard input, or --sample with one of %s", sampleNames())
	default:
		h, err := p.readHistory(args[0])
		if err != nil {
			return e, err
		}
		e.Source, e.Data, e.Format = "standard input", h.data, h.format
		if args[0] != "-" {
			e.Source = term.Clean(filepath.Base(args[0]))
		}
	}
	e.Policies = f.policy
	if slices.Equal(f.policy, []string{"all"}) {
		e.Policies = app.EvaluationPolicies()
	}
	if f.facts != "" {
		var err error
		if e.Facts, err = os.ReadFile(f.facts); err != nil {
			return e, core.Errorf(core.ErrInvalid, "--facts: %v", err)
		}
	}
	return e, nil
}

func sampleNames() string {
	var names []string
	for _, s := range app.EvaluationSamples() {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}

// listSamples prints the samples.
func (p *program) listSamples() error {
	if p.json {
		return p.printJSON(struct {
			Items any `json:"items"`
		}{app.EvaluationSamples()})
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tWINDOW\tABOUT")
	for _, s := range app.EvaluationSamples() {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, term.Number(s.Window), s.About)
	}
	return w.Flush()
}
