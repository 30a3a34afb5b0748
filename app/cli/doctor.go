package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core/logging"
	"bobbin/app/ops"
)

func (p *program) doctorCommand() *cobra.Command {
	var o ops.DoctorOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Diagnose the installation and suggest fixes",
		Long: "Checks the configuration, the data folder, the database, the models, the agent files, their tools, Slack, the\n" +
			"clock and the address. It changes nothing, and calls models and the servers of tools only with\n" +
			"--call. The exit code is 1 if something does not work.",
		Example: "  bobbin doctor\n  bobbin doctor --call --json",
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.runDoctor(cmd, o) },
	}
	cmd.Flags().BoolVar(&o.Call, "call", false, "also call the models, with a few tokens each, and connect to the servers of tools")
	cmd.Flags().StringVar(&o.Address, "slack-address", "", "public `address` of this Bobbin: check that requests of Slack get there")
	p.withJSON(cmd)
	return cmd
}

func (p *program) runDoctor(cmd *cobra.Command, o ops.DoctorOptions) error {
	cfg, origins, err := p.loadServerSettings(cmd)
	logger, logErr := logging.New(p.Err, logging.Options{Level: "error", Format: "text"})
	if logErr != nil {
		return logErr
	}
	var unseen *unseenError
	if errors.As(err, &unseen) {
		return p.reportDiagnosis(ops.Diagnosis{Status: ops.VerdictWarn, Findings: []ops.Finding{{Check: "configuration", Status: ops.VerdictWarn, Detail: err.Error()}}})
	}
	o.Config, o.Origins, o.Err, o.Logger = cfg, origins, err, logger
	return p.reportDiagnosis(ops.Doctor(cmd.Context(), o))
}

// reportDiagnosis prints the findings. Its error says that something does not work.
func (p *program) reportDiagnosis(found ops.Diagnosis) error {
	if p.json {
		if err := p.printJSON(found); err != nil {
			return err
		}
	} else {
		width, _ := p.terminalSize()
		for _, f := range found.Findings {
			line := fmt.Sprintf("%-4s  %s: %s", f.Status, f.Check, term.Clean(f.Detail))
			fmt.Fprintln(p.Out, term.Wrap(line, width, "      "))
			if f.Do != "" {
				do := strings.Replace(term.Clean(f.Do), "bobbin ", programName()+" ", 1)
				fmt.Fprintln(p.Out, term.Wrap("      → "+do, width, "        "))
			}
		}
		switch found.Status {
		case ops.VerdictFail:
			fmt.Fprintln(p.Out, "something does not work")
		case ops.VerdictWarn:
			fmt.Fprintln(p.Out, "everything works, but see the warnings")
		case ops.VerdictOK:
			fmt.Fprintln(p.Out, "everything works")
		}
	}
	if found.Status == ops.VerdictFail {
		return &silentError{"something does not work"}
	}
	return nil
}
