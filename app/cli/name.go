package cli

import (
	"os"
	"path/filepath"
	"strings"
)

// programName returns how this program was begun, so that the commands which it
// recommends can be typed as they stand.
func programName() string {
	name := os.Args[0]
	switch {
	case strings.Contains(filepath.ToSlash(name), "/go-build"):
		return "go run ."
	case name == "":
		return "bobbin"
	default:
		return name
	}
}
