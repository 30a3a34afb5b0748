// Package cli is Bobbin's command line: one command a file, no logic. What it
// shows comes from a running Bobbin, or from one that it starts for the time of
// the command.
package cli

import (
	"context"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"bobbin/app/core/config"
	"bobbin/app/core/logging"
)

// Streams are the program's standard streams.
type Streams struct {
	In  *os.File
	Out io.Writer
	Err io.Writer
}

// program is what all commands share.
type program struct {
	Streams
	file  string // --config
	flags map[string]*string
	json  bool // --json: see withJSON
}

// Main runs the command line and returns the exit code: 0, or 1 after an error
// that it has told.
func Main(ctx context.Context, args []string, streams Streams) int {
	p := &program{Streams: streams, flags: map[string]*string{}}
	root := p.root() //nolint:contextcheck // commands get theirs from ExecuteContext
	root.SetArgs(args)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	if err := root.ExecuteContext(ctx); err != nil {
		p.tell(err, slices.Contains(args, "--json"))
		return 1
	}
	return 0
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "bobbin",
		Short: "An agent server that winds long threads small and never cuts one",
		Long: "Bobbin keeps conversations that go on for ever: every message is kept, old ones are\n" +
			"summarized when they must be, every prompt fits, and you can see and steer all of it.",
		Example: "  bobbin serve                 the server, on http://127.0.0.1:8080\n" +
			"  bobbin chat                  a conversation in the terminal",
		SilenceUsage: true, SilenceErrors: true,
		Args: needsCommand, RunE: showHelp,
	}
	root.SetFlagErrorFunc(flagError)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { p.help(cmd) })
	p.addFlags(root)
	root.AddCommand(p.users(), p.keys(), p.audit(), p.tokens(), p.doctor(), p.eval(), p.backup())
	defer p.completeFlags(root)
	root.AddCommand(p.serve(), p.chat(), p.sessions(), p.runs(), p.deliveries(), p.context(), p.summary(), p.usage(), p.memories(), p.search(), p.importHistory(), p.migrate(), p.graph(), p.config(), p.version())
	return root
}

// addFlags gives every setting that is one value a flag. Secrets have none: other
// users of the machine can read a command line.
func (p *program) addFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&p.file, "config", "", "configuration `file` (default bobbin.yaml here, then in the user's configuration folder)")
	for _, k := range config.Keys() {
		if k.Flag() == "" {
			continue
		}
		p.flags[k.Name] = flags.String(k.Flag(), "", plain(k.Meaning))
		if strings.HasPrefix(k.Name, "limits.") {
			// There are many; docs/CONFIGURATION.md and `config show` list them.
			_ = flags.MarkHidden(k.Flag())
		}
	}
}

// plain takes the Markdown out of a setting's meaning. Cobra would take a quoted
// word for the name of the value.
func plain(markdown string) string { return strings.ReplaceAll(markdown, "`", "") }

// load reads the settings.
func (p *program) load(cmd *cobra.Command) (config.Config, config.Origins, error) {
	given := map[string]string{}
	for _, k := range config.Keys() {
		if v, ok := p.flags[k.Name]; ok && cmd.Flags().Changed(k.Flag()) {
			given[k.Name] = *v
		}
	}
	return config.Load(config.Options{File: p.file, Flags: given})
}

// logger returns the logger of the settings; quiet lets only warnings through
// unless the user asked for a level.
func (p *program) logger(cfg config.Config, origins config.Origins, quiet bool) (*slog.Logger, error) {
	level := cfg.Log.Level
	if quiet && !origins.Set("log.level") {
		level = "error"
	}
	return logging.New(p.Err, logging.Options{Level: level, Format: cfg.Log.Format})
}
