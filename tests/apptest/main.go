package apptest

import (
	"os"
	"testing"

	"bobbin/app/extract"
	"bobbin/tests/mcptest"
)

// Main runs the tests of a package, or makes its test program the one that reads documents or
// an MCP server. It does not return.
func Main(m *testing.M) {
	mcptest.Main()
	if len(os.Args) == 3 && os.Args[1] == extract.Command {
		os.Exit(extract.Serve(os.Args[2], os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}
