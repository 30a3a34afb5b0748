package cli

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"bobbin/app"
	"bobbin/licenses"
)

func (p *program) versionCommand() *cobra.Command {
	notices := false
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  bobbin version --json\n  bobbin version --notices | less",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			b := readBuild()
			if notices {
				_, err := io.WriteString(p.Out, licenses.ThirdParty())
				return err
			}
			if p.json {
				return p.printJSON(b)
			}
			fmt.Fprintf(p.Out, "bobbin %s", b.Version)
			if b.Commit != "" {
				fmt.Fprintf(p.Out, " (%s, %s)", b.Commit, b.Date)
			}
			fmt.Fprintf(p.Out, " %s %s/%s\n", b.Go, runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
	p.withJSON(cmd).Flags().BoolVar(&notices, "notices", false, "print the licenses of third-party software")
	cmd.MarkFlagsMutuallyExclusive("json", "notices")
	return cmd
}

// version is the release that this source is, or becomes. It stands here alone: scripts/release reads it.
const version = "0.9.0"

// readBuild returns the build information that the Go tool recorded.
func readBuild() app.Build {
	b := app.Build{Version: version, Go: runtime.Version()}
	b.Program, _ = os.Executable() // without it documents cannot be read
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	modified := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value[:min(len(s.Value), 12)]
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	if b.Commit != "" && modified {
		b.Commit += "-dirty"
	}
	return b
}
