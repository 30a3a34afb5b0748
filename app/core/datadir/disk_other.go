//go:build !linux && !darwin && !freebsd

package datadir

// Free returns how many bytes this user can still write at path, of the size of the disk; false if
// that is unknown.
func Free(string) (free, size uint64, ok bool) { return 0, 0, false }
