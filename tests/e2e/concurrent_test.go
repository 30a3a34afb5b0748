package e2e_test

import (
	"bobbin/app/core"
)

// log returns the contents of the role's messages.
func log(all []core.Message, role core.Role) []string {
	var out []string
	for _, m := range all {
		if m.Role == role {
			out = append(out, m.Content)
		}
	}
	return out
}
