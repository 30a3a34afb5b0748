//go:build !linux && !darwin && !freebsd

package extract

// limitProcess does nothing: only Reader's timeout and Go's own memory limit apply.
func limitProcess() error { return nil }
