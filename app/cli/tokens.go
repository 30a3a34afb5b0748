package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	tty "golang.org/x/term"

	"bobbin/app/cli/term"
	"bobbin/app/core"
	"bobbin/app/core/tokens"
	"bobbin/app/ops"
)

// maxCounted is the maximum size of a text to count, in bytes.
const maxCounted = 1 << 30

func (p *program) tokensCommand() *cobra.Command {
	file, model := "", ""
	cmd := &cobra.Command{
		Use:   "tokens [text | -]",
		Short: "Count the tokens of a text",
		Long: "Counts the tokens of a text exactly in cl100k_base, and estimates them for a model from what the\n" +
			"model's provider has counted so far. Without a text, or with -, it reads the standard input.",
		Example: "  bobbin tokens \"How long is this?\"\n  bobbin tokens --file book.txt --model claude-sonnet-4-5",
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := p.readCountedText(args, file)
			if err != nil {
				return err
			}
			return p.countTokens(cmd, model, text)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "count the tokens of this `file`")
	cmd.Flags().StringVarP(&model, "model", "m", "", "estimate for this `model` (default: the agents' model)")
	p.withJSON(cmd)
	return cmd
}

// readCountedText returns the text to count.
func (p *program) readCountedText(args []string, file string) (string, error) {
	switch {
	case file != "" && len(args) > 0:
		return "", core.Errorf(core.ErrInvalid, "give either a text or --file, not both")
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
		return "", core.Errorf(core.ErrInvalid, "no text given: %s tokens \"some text\", or --file, or - to type it", programName())
	default:
		return p.readInput(maxCounted)
	}
}

// readInput reads the standard input to its end.
func (p *program) readInput(maxBytes int64) (string, error) { return readAll(p.In, maxBytes) }

func readAll(r io.Reader, maxBytes int64) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err == nil && int64(len(data)) > maxBytes {
		return "", core.Errorf(core.ErrTooLarge, "the input has more than %d bytes", maxBytes)
	}
	return string(data), err
}

func (p *program) countTokens(cmd *cobra.Command, model, text string) error {
	cfg, logger, err := p.loadWithLogger(cmd)
	if err != nil {
		return err
	}
	n, err := ops.CountTokens(cmd.Context(), cfg, logger, model, text)
	if err != nil {
		return err
	}
	if p.json {
		return p.printJSON(n)
	}
	how := "not measured yet, includes a margin"
	if n.Calibration.Measured {
		how = fmt.Sprintf("measured in %d calls, ± %.0f %%", n.Calibration.Samples, 100*n.Calibration.Deviation)
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "bytes\t%d\n", n.Bytes)
	fmt.Fprintf(w, "characters\t%d\n", n.Characters)
	fmt.Fprintf(w, "%s\t%d tokens\n", tokens.Encoding, n.TokenCount)
	fmt.Fprintf(w, "%s\t≈ %d tokens, %.1f %% of its window of %d\n", term.Clean(n.Model), n.Estimate, 100*float64(n.Estimate)/float64(max(n.Window, 1)), n.Window)
	fmt.Fprintf(w, "\t(× %.3f, %s)\n", n.Calibration.Factor, how)
	return w.Flush()
}
