//go:build linux || darwin || freebsd

package datadir

import "syscall"

// Free returns how many bytes this user can still write at path; false if that is unknown.
func Free(path string) (uint64, bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, false
	}
	return uint64(s.Bavail) * uint64(s.Bsize), true //nolint:gosec,unconvert // both are positive, and of other types elsewhere
}
