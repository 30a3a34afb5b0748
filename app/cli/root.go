// Package cli is Bobbin's command line: one file per command, no business logic. What it
// shows comes from a running server, or from one that it starts for the duration of the
// command.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/datadir"
	"bobbin/app/core/logging"
	"bobbin/app/extract"
)

// Streams are the program's standard streams. Commands write to Out and Err through
// term.Output, so that no text can control the terminal.
type Streams struct {
	In  *os.File
	Out io.Writer
	Err io.Writer
}

// program is what all commands share.
type program struct {
	Streams
	file               string // --config
	flags              map[string]*string
	url                string   // --url
	key                string   // --key
	helpAll            bool     // --help-all
	json               bool     // --json: see withJSON
	environmentChecked bool     // unknown environment variables were reported
	unseen             []string // variables with secrets that the server has, and this command has not
}

// Main runs the command line and returns the exit code: 0, or 1 after an error, which it
// has printed.
func Main(ctx context.Context, args []string, streams Streams) int {
	if len(args) == 2 && args[0] == extract.Command {
		return extract.Serve(args[1], streams.In, streams.Out)
	}
	streams.Out, streams.Err = term.NewOutput(streams.Out), term.NewOutput(streams.Err)
	p := &program{Streams: streams, flags: map[string]*string{}}
	if err := hideEnvironment(); err != nil { // commands without a server start tools, too
		fmt.Fprintf(p.Err, "warning: programs of this user can read the environment of this process: %v\n", err)
	}
	root := p.rootCommand()     //nolint:contextcheck // commands get theirs from ExecuteContext
	shown := slices.Clone(args) // with --help in the place of --help-all, so that no command runs
	for i, arg := range shown {
		if arg == "--" {
			break
		}
		if arg == "--help-all" {
			p.helpAll, shown[i] = true, "--help"
		}
	}
	root.SetArgs(shown)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	if err := root.ExecuteContext(ctx); err != nil {
		asJSON := slices.Contains(args, "--json")
		_, silent := errors.AsType[*silentError](err)
		switch {
		case silent:
		case p.json || asJSON:
			_ = writeJSON(p.Err, problemOf(err)) // there is nowhere left to report it
		default:
			fmt.Fprintf(p.Err, "bobbin: %s\n", term.ErrorText(err))
		}
		return 1
	}
	return 0
}

func (p *program) rootCommand() *cobra.Command {
	root := groupOf("bobbin", "An agent server that winds long threads small and never cuts one")
	root.Long = "Bobbin keeps conversations that never end: every message is stored, older ones are\n" +
		"summarized when necessary, every prompt fits, and you can inspect and control all of it."
	root.Example = "  bobbin serve                 the server, on http://127.0.0.1:8080\n" +
		"  bobbin chat                  a conversation in the terminal\n" +
		"  bobbin ask what is 19*23     one question, one answer"
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetFlagErrorFunc(flagError)
	printHelp := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) { p.fitHelp(cmd); printHelp(cmd, args) })
	flags := root.PersistentFlags()
	flags.StringVar(&p.url, "url", "", "use the server at this `address` (or "+config.URLVariable+") instead of the one on the data folder")
	flags.StringVar(&p.key, "key", "", "API key for --url, as env:NAME or @file: other users can see command lines (or "+config.KeyVariable+")")
	flags.BoolVar(&p.helpAll, "help-all", false, "show help with the flags of all settings")
	flags.StringVar(&p.file, "config", "", "configuration `file` (default: bobbin.yaml here, then in your configuration folder)")
	for _, k := range config.Keys() {
		if k.Flag() == "" {
			continue
		}
		p.flags[k.Name] = flags.String(k.Flag(), "", strings.ReplaceAll(k.Meaning, "`", ""))
	}
	root.AddCommand(
		p.serveCommand(), p.chatCommand(), p.askCommand(), p.sessionsCommand(), p.runsCommand(), p.contextCommand(), p.searchCommand(), p.apiCommand(), p.importCommand(),
		p.keysCommand(), p.auditCommand(), p.doctorCommand(), p.backupCommand(), p.migrateCommand(), p.versionCommand(),
		groupOf("users", "Export or permanently remove all data of a user", p.purgeUserCommand(), p.exportUserCommand()),
		groupOf("agents", "List, show, check and reload the agents", p.showAgentCommand(), p.checkAgentsCommand(), p.reloadAgentsCommand()),
		groupOf("mcp", "List MCP servers and their tools", p.listMCPCommand()),
		groupOf("slack", "Connect Slack workspaces", p.slackManifestCommand()),
		groupOf("eval", "Evaluate context management", p.evalContextCommand()),
		groupOf("config", "Inspect settings", p.showConfigCommand()),
	)
	p.completeFlags(root)
	return root
}

// loadFolderSettings reads the settings for a command that works in the data folder, which
// must belong to this user.
func (p *program) loadFolderSettings(cmd *cobra.Command) (config.Config, config.Origins, error) {
	cfg, origins, err := p.loadSettings(cmd)
	if err == nil {
		err = core.CheckOwner(cfg.DataDir)
	}
	return cfg, origins, err
}

// serverAddress returns the address of the server to use instead of the data folder: that of
// --url, else that of the environment unless --data-dir names the folder. Empty = none.
func (p *program) serverAddress(cmd *cobra.Command) string {
	if p.url != "" || cmd.Flags().Changed("data-dir") {
		return p.url
	}
	return os.Getenv(config.URLVariable)
}

// withLogger returns loaded settings with a logger, for a command that logs errors only.
func (p *program) withLogger(cfg config.Config, origins config.Origins, err error) (config.Config, *slog.Logger, error) {
	return cfg, p.newLogger(cfg, origins, true), err
}

func (p *program) loadSettings(cmd *cobra.Command) (config.Config, config.Origins, error) {
	switch {
	case p.url != "":
		return config.Config{}, nil, core.Errorf(core.ErrInvalid, "%s works on this machine and does not accept --url", cmd.CommandPath())
	case p.serverAddress(cmd) != "" && cmd.Name() != "serve": // serve is the server that other commands name
		return config.Config{}, nil, core.Errorf(core.ErrInvalid, "%s works on this machine, not on the server of %s; unset %[2]s or give --data-dir", cmd.CommandPath(), config.URLVariable)
	}
	if !p.environmentChecked {
		p.environmentChecked = true
		for _, warning := range config.CheckEnvironment(os.Environ()) {
			fmt.Fprintln(p.Err, "warning: "+warning)
		}
	}
	given := map[string]string{}
	for _, k := range config.Keys() {
		if v, ok := p.flags[k.Name]; ok && cmd.Flags().Changed(k.Flag()) {
			given[k.Name] = *v
		}
	}
	cfg, origins, err := config.Load(config.Options{File: p.file, Flags: given})
	if file := config.UnnamedFile(err); file != "" {
		command := programName() + strings.TrimPrefix(cmd.CommandPath(), "bobbin")
		err = fmt.Errorf("%w\n%s", err, fmt.Sprintf("the file %s was not named explicitly and may have come with this folder; if it is yours and you trust it:\n"+
			"  %s --config %s\nor, for all commands: export %s=%s", file, command, file, config.FileVariable, file))
	}
	return cfg, origins, err
}

// loadServerSettings reads the settings of the server that runs on the data folder. It uses
// the server's environment and flags, which the folder records, instead of this command's, which may be
// a part of them that is none by itself. Without a server it is loadFolderSettings.
func (p *program) loadServerSettings(cmd *cobra.Command) (config.Config, config.Origins, error) {
	cfg, origins, err := p.loadSettings(cmd)
	if cfg.DataDir == "" || config.UnnamedFile(err) != "" { // the folder is not known, or not trusted
		return cfg, origins, err
	}
	if foreign := core.CheckOwner(cfg.DataDir); foreign != nil {
		return cfg, origins, foreign
	}
	server, ok := datadir.Running(cfg.DataDir)
	if !ok || server.Start.File == "" && len(server.Start.Settings) == 0 {
		return cfg, origins, err
	}
	settings := map[string]string{}
	maps.Copy(settings, server.Start.Settings)
	settings["data_dir"] = cfg.DataDir // it may have been started in another directory
	for _, k := range config.Keys() {
		if v, ok := p.flags[k.Name]; ok && cmd.Flags().Changed(k.Flag()) {
			settings[k.Name] = *v
		}
	}
	p.unseen = slices.DeleteFunc(slices.Clone(server.Start.Secrets), func(name string) bool { return os.Getenv(name) != "" })
	without := ""
	if len(p.unseen) > 0 {
		without = ", without its " + strings.Join(p.unseen, ", ")
	}
	fmt.Fprintf(p.Err, "using the settings of the server at %s, process %d%s\n", server.URL, server.PID, without)
	secret := func(name string) string {
		if !slices.Contains(server.Start.Secrets, name) {
			return ""
		}
		return os.Getenv(name)
	}
	folder := origins.Of("data_dir")
	cfg, origins, err = config.Load(config.Options{File: server.Start.File, Env: secret, Flags: settings})
	if i := slices.IndexFunc(origins, func(o config.Origin) bool { return o.Key == folder.Key }); i >= 0 {
		origins[i].From = folder.From
	}
	if err != nil && len(p.unseen) > 0 {
		err = fmt.Errorf("the server has %s in its environment, and this command has not: run it with the server's environment", strings.Join(p.unseen, ", "))
	}
	return cfg, origins, err
}

// newLogger returns a logger as the settings configure it; quiet logs errors only unless
// the user set a level.
func (p *program) newLogger(cfg config.Config, origins config.Origins, quiet bool) *slog.Logger {
	level := cfg.Log.Level
	if quiet && !origins.Set("log.level") {
		level = "error"
	}
	return logging.New(p.Err, level, cfg.Log.Format)
}

// suggestCommand returns a command line for the server or the folder that this command uses: it
// repeats the flags that name it. Of the key it has the place where it is, never the key.
func (p *program) suggestCommand(args ...string) string {
	words := []string{}
	for _, arg := range args {
		words = append(words, shellWord(arg))
	}
	for _, flag := range [][2]string{{"config", p.file}, {"data-dir", *p.flags["data_dir"]}, {"url", p.url}, {"key", p.key}} {
		isSecret := flag[0] == "key" && !strings.HasPrefix(p.key, "env:") && !strings.HasPrefix(p.key, "@")
		if flag[1] != "" && !isSecret {
			words = append(words, "--"+flag[0], shellWord(flag[1]))
		}
	}
	return programName() + " " + strings.Join(words, " ")
}

// plainWord matches a word that means itself in every shell.
var plainWord = regexp.MustCompile(`^[\w@%+,./:-][\w@%+,./:=-]*$`)

func shellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// programName returns how this program was started, so that the commands that it
// recommends can be typed as they are.
func programName() string {
	name := os.Args[0]
	switch {
	case strings.Contains(filepath.ToSlash(name), "/go-build"):
		if info, ok := debug.ReadBuildInfo(); ok { // with other tags everything would be compiled again
			for _, s := range info.Settings {
				if s.Key == "-tags" {
					return "go run -tags " + s.Value + " ."
				}
			}
		}
		return "go run ."
	case name == "":
		return "bobbin"
	default:
		return name
	}
}
