package app

import (
	"log/slog"
	"math"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"bobbin/app/core/config"
)

// What runs take while they wait for their models, and how many execute at once where nobody
// configured that. Measured: about 450 KiB for a run and its stream in a short conversation, and two open files,
// the connections of the client and of the model.
const (
	runMemory    = 512 << 10
	runFiles     = 2
	reserveFiles = 256 // for everything else
	fewestRuns   = 256
	mostRuns     = 4096
)

// fitRuns returns the limits with the number of concurrent runs that half of the memory of the process has
// room for, and its open files, unless it is configured. It warns about a limit on open files that is too low.
func fitRuns(l config.Limits, logger *slog.Logger) config.Limits {
	files := maxOpenFiles()
	fit := max((files-reserveFiles)/runFiles, 1)
	if l.ConcurrentRuns == 0 {
		l.ConcurrentRuns = min(max(int(min(machineMemory()/2/runMemory, mostRuns)), fewestRuns), fit)
	}
	if l.ConcurrentRuns > fit || fit < fewestRuns {
		logger.Warn("few open files are allowed: requests will fail while many runs execute; raise the limit (ulimit -n, LimitNOFILE, --ulimit nofile)",
			"open_files", files, "concurrent_runs", l.ConcurrentRuns, "needed", max(l.ConcurrentRuns, fewestRuns)*runFiles+reserveFiles)
	}
	return l
}

// machineMemory returns the bytes of memory that the process may have: that of its container, if there is one.
func machineMemory() int64 {
	limit := limitMemory()
	if total, err := memlimit.FromSystem(); err == nil && total < math.MaxInt64 {
		limit = min(limit, int64(total))
	}
	return limit
}
