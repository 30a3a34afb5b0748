package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"bobbin/app"
)

func (p *program) version() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Say which program this is",
		Example: "  bobbin version --json",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			b := build()
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
	p.withJSON(cmd)
	return cmd
}

// build reads what the Go tool has noted about this program.
func build() app.Build {
	b := app.Build{Version: "dev", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value[:min(len(s.Value), 12)]
		case "vcs.time":
			b.Date = s.Value
		}
	}
	return b
}
