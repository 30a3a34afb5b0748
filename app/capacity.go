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

// fitRuns returns the limits with the number of concurrent runs that half of the memory of the container or
// the machine has room for, and the open files, unless it is configured. It warns about too few open files.
func fitRuns(l config.Limits, logger *slog.Logger) config.Limits {
	files, memory := maxOpenFiles(), limitMemory()
	if total, err := memlimit.FromSystem(); err == nil {
		memory = min(memory, int64(min(total, math.MaxInt64)))
	}
	fit := max((files-reserveFiles)/runFiles, 1)
	if l.ConcurrentRuns == 0 {
		l.ConcurrentRuns = min(max(int(min(memory/2/runMemory, mostRuns)), fewestRuns), fit)
	}
	if l.ConcurrentRuns > fit || fit < fewestRuns {
		logger.Warn("few open files are allowed: raise the limit (ulimit -n, LimitNOFILE, --ulimit nofile), or requests fail while many runs execute",
			"open_files", files, "concurrent_runs", l.ConcurrentRuns, "needed", max(l.ConcurrentRuns, fewestRuns)*runFiles+reserveFiles)
	}
	return l
}
