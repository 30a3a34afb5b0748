package e2e_test

import (
	"bobbin/tests/provider"
)

// cacheOf adds up what the provider's cache held of the prompts.
func cacheOf(all []provider.Received) (read, written, tokens int) {
	for _, r := range all {
		read, written, tokens = read+r.CacheRead, written+r.CacheWrite, tokens+r.Tokens
	}
	return read, written, tokens
}
