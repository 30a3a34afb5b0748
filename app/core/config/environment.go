package config

import (
	"slices"
	"strings"

	"bobbin/app/core"
)

// Variables of the command line, which are no settings of a server.
const (
	URLVariable = "BOBBIN_URL" // the server that commands talk to
	KeyVariable = "BOBBIN_KEY" // the API key that they send
)

// CheckEnvironment returns a warning for each variable of the environment (as os.Environ
// returns it) that looks like a setting and is none. Those of tests are left out.
func CheckEnvironment(environ []string) []string {
	known := []string{FileVariable, URLVariable, KeyVariable}
	for _, k := range Keys() {
		known = append(known, k.Env())
	}
	var warnings []string
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "BOBBIN_") || strings.HasPrefix(name, "BOBBIN_TEST_") || slices.Contains(known, name) {
			continue
		}
		warnings = append(warnings, "the environment variable "+name+" is no setting; "+core.Suggest(name, known, "", "docs/CONFIGURATION.md lists them"))
	}
	slices.Sort(warnings)
	return warnings
}
