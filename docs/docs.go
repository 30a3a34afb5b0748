// Package docs holds the documentation that the program shows.
package docs

import _ "embed"

// Configuration is CONFIGURATION.md, which says what each setting means.
//
//go:embed CONFIGURATION.md
var Configuration string
