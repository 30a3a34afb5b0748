//go:build linux || darwin || freebsd

package extract

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// limitProcess limits the resources of the process. A document that needs more kills it. macOS
// does not enforce the memory limit.
func limitProcess() error {
	if runtime.GOOS == "linux" { // the first process to be killed when memory is short; a failure is harmless
		_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	}
	const maxFiles = 16
	for resource, limit := range map[int]uint64{
		unix.RLIMIT_CPU: maxSeconds, unix.RLIMIT_DATA: maxMemory, unix.RLIMIT_FSIZE: 0, unix.RLIMIT_NOFILE: maxFiles, unix.RLIMIT_CORE: 0,
	} {
		var r unix.Rlimit
		setLimit(&r.Cur, limit)
		setLimit(&r.Max, limit)
		if err := unix.Setrlimit(resource, &r); err != nil {
			return err
		}
	}
	const nice = 10
	return unix.Setpriority(unix.PRIO_PROCESS, 0, nice)
}

// setLimit sets a field of unix.Rlimit, which is signed on FreeBSD.
func setLimit[T int64 | uint64](field *T, limit uint64) { *field = T(limit) }
