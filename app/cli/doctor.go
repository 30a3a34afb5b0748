package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"bobbin/app"
	"bobbin/app/cli/term"
	"bobbin/app/core/logging"
)

func (p *program) doctor() *cobra.Command {
	call := false
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check everything that Bobbin needs, and say what to do",
		Long: "Checks the configuration, the data folder, the database, the models, the agents' files, the clock\n" +
			"and the address. It changes nothing, and calls no model unless --call says so. The exit code is 1\n" +
			"if something does not work.",
		Example: "  bobbin doctor\n  bobbin doctor --call --json",
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.runDoctor(cmd, call) },
	}
	cmd.Flags().BoolVar(&call, "call", false, "also call the models, for a few tokens each")
	p.withJSON(cmd)
	return cmd
}

func (p *program) runDoctor(cmd *cobra.Command, call bool) error {
	cfg, origins, err := p.load(cmd)
	logger, logErr := logging.New(p.Err, logging.Options{Level: "error", Format: "text"})
	if logErr != nil {
		return logErr
	}
	found := app.Doctor(cmd.Context(), app.DoctorOptions{Config: cfg, Origins: origins, Err: err, Call: call, Logger: logger})
	if p.json {
		if err := p.printJSON(found); err != nil {
			return err
		}
	} else {
		p.showFindings(found)
	}
	if found.Status == app.VerdictFail {
		return &silentError{"something does not work"}
	}
	return nil
}

// showFindings prints a line for each check, and below it what to do.
func (p *program) showFindings(found app.Diagnosis) {
	width, _ := p.terminal()
	for _, f := range found.Findings {
		line := fmt.Sprintf("%-4s  %s: %s", f.Status, f.Check, term.Clean(f.Detail))
		fmt.Fprintln(p.Out, term.Wrap(line, width, "      "))
		if f.Do != "" {
			do := strings.Replace(term.Clean(f.Do), "bobbin ", programName()+" ", 1)
			fmt.Fprintln(p.Out, term.Wrap("      → "+do, width, "        "))
		}
	}
	switch found.Status {
	case app.VerdictFail:
		fmt.Fprintln(p.Out, "something does not work")
	case app.VerdictWarn:
		fmt.Fprintln(p.Out, "it works; look at the warnings")
	case app.VerdictOK:
		fmt.Fprintln(p.Out, "all is well")
	}
}
