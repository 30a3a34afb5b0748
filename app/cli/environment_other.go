//go:build !linux

package cli

// hideEnvironment does nothing: only Linux has /proc/<pid>/environ.
func hideEnvironment() error { return nil }
