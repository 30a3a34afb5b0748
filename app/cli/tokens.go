package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	tty "golang.org/x/term"

	"bobbin/app"
	"bobbin/app/cli/term"
	"bobbin/app/core"
)

// maxCounted bounds a text that is counted, in bytes.
const maxCounted = 1 << 30

func (p *program) tokens() *cobra.Command {
	file, model := "", ""
	cmd := &cobra.Command{
		Use:   "tokens [text | -]",
		Short: "Count the tokens of a text",
		Long: "Counts a text in cl100k_base, exactly, and estimates how many tokens it is for a model, by what\n" +
			"the model's provider counted so far. Without a text, or with -, it is read from the standard input.",
		Example: "  bobbin tokens \"How long is this?\"\n  bobbin tokens --file book.txt --model claude-sonnet-4-5",
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := p.counted(args, file)
			if err != nil {
				return err
			}
			return p.countTokens(cmd, model, text)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "count what is in this `file`")
	cmd.Flags().StringVarP(&model, "model", "m", "", "the `model` (default: the one that agents use)")
	p.withJSON(cmd)
	return cmd
}

// counted returns the text that is meant.
func (p *program) counted(args []string, file string) (string, error) {
	switch {
	case file != "" && len(args) > 0:
		return "", core.Errorf(core.ErrInvalid, "a text or --file, not both")
	case file != "":
		f, err := os.Open(file)
		if err != nil {
			return "", core.Errorf(core.ErrInvalid, "--file: %v", err)
		}
		defer f.Close()
		return readAll(f, maxCounted)
	case len(args) > 0 && (len(args) > 1 || args[0] != "-"):
		return strings.Join(args, " "), nil
	case len(args) == 0 && tty.IsTerminal(int(p.In.Fd())):
		return "", core.Errorf(core.ErrInvalid, "which text? %s tokens \"some text\", or --file, or - to type it", programName())
	default:
		return p.readInput(maxCounted)
	}
}

// readInput reads the standard input to its end.
func (p *program) readInput(most int64) (string, error) { return readAll(p.In, most) }

func readAll(r io.Reader, most int64) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(data)) > most {
		return "", core.Errorf(core.ErrTooLarge, "that is more than %d bytes", most)
	}
	return string(data), err
}

func (p *program) countTokens(cmd *cobra.Command, model, text string) error {
	cfg, origins, err := p.load(cmd)
	if err != nil {
		return err
	}
	logger, err := p.logger(cfg, origins, true)
	if err != nil {
		return err
	}
	n, err := app.CountTokens(cmd.Context(), cfg, logger, model, text)
	if err != nil {
		return err
	}
	if p.json {
		return p.printJSON(n)
	}
	how := "not measured yet, with a margin"
	if n.Calibration.Measured {
		how = fmt.Sprintf("measured in %d calls, ± %.0f %%", n.Calibration.Samples, 100*n.Calibration.Deviation)
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "bytes\t%d\n", n.Bytes)
	fmt.Fprintf(w, "characters\t%d\n", n.Characters)
	fmt.Fprintf(w, "cl100k_base\t%d tokens\n", n.TokenCount)
	fmt.Fprintf(w, "%s\t≈ %d tokens, %.1f %% of its window of %d\n", term.Clean(n.Model), n.Estimate, 100*float64(n.Estimate)/float64(max(n.Window, 1)), n.Window)
	fmt.Fprintf(w, "\t(× %.3f, %s)\n", n.Calibration.Factor, how)
	return w.Flush()
}
