//go:build linux || darwin || freebsd

package datadir

import "syscall"

// Free returns how many bytes this user can still write at path, of the size of the disk; false if
// that is unknown.
func Free(path string) (free, size uint64, ok bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, 0, false
	}
	block := uint64(s.Bsize)                                //nolint:gosec,unconvert // positive, and of another type elsewhere
	return uint64(s.Bavail) * block, s.Blocks * block, true //nolint:gosec,unconvert // likewise
}
