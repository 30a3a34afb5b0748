package app

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"bobbin/app/api"
	"bobbin/app/api/handlers"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/datadir"
	"bobbin/app/core/quota"
	"bobbin/app/wire"
)

// maxRequestMemory is the most memory that requests take of which nobody configured how much.
const maxRequestMemory = 256 << 20

// openSpace makes what bounds the memory and the disk space that requests take.
func openSpace(cfg config.Config, data *datadir.Folder) (handlers.Space, error) {
	const folder = "requests"
	if err := data.OpenTemp(folder, handlers.SpoolPrefix); err != nil {
		return handlers.Space{}, err
	}
	l := cfg.Limits
	body, file := int64(l.BodyBytes), int64(cfg.Files.Bytes)
	memory := cmp.Or(int64(l.RequestMemoryBytes), min(maxRequestMemory, limitMemory()/4))
	page := int64(2*core.MaxMessagePageBytes + core.MaxPageBytes)
	form := body + int64(cfg.Files.PerMessage)*file + 1<<20
	return handlers.Space{
		Memory: quota.New(quota.Shared("memory", memory, max(body+file, page, api.OpenAIFactor*body))),
		Disk:   quota.New(quota.Shared("disk space", int64(l.RequestDiskBytes), max(form, int64(l.ImportBytes)))),
		Folder: filepath.Join(cfg.DataDir, folder),
	}, nil
}

// newStored returns the limits of what is stored. Where the database is a file, a twentieth of its disk stays
// free: at least 1 GiB and at most 10, on a small disk a tenth.
func newStored(d wire.Deps) *quota.Stored {
	l := quota.StoredLimits{User: int64(d.Config.Limits.UserBytes), Owner: int64(d.Config.Limits.OwnerBytes), Sum: d.Stores.Sessions.StoredBytes}
	if path, embedded := wire.SQLiteFile(d.Config); embedded {
		l.CheckDisk = func() error {
			free, size, known := datadir.Free(filepath.Dir(path))
			floor := min(max(size/20, 1<<30), 10<<30, size/10)
			if !known || free >= floor {
				return nil
			}
			return &core.Error{Kind: core.ErrUnavailable, Code: quota.CodeStorageFull, RetryAfter: time.Minute, Message: fmt.Sprintf(
				"the server's disk has %s left: imports, forks and uploads wait until it has %s; messages are accepted", core.ByteSize(int64(free)), core.ByteSize(int64(floor)))} //nolint:gosec // no disk is that large
		}
	}
	return quota.NewStored(l)
}

// limitMemory has the garbage collector keep to nine tenths of the memory that the
// process's container has, unless GOMEMLIMIT says how much, and returns the limit;
// math.MaxInt64 if there is none.
func limitMemory() int64 {
	_, _ = memlimit.Set(memlimit.WithRatio(0.9)) // it fails where there are no containers
	return debug.SetMemoryLimit(-1)
}

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
