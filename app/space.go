package app

import (
	"cmp"
	"path/filepath"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"bobbin/app/api"
	"bobbin/app/api/handlers"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/datadir"
	"bobbin/app/core/quota"
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
	page := int64(core.MaxMessagePageBytes + core.MaxPageBytes)
	form := body + int64(cfg.Files.PerMessage)*file + 1<<20
	return handlers.Space{
		Memory: quota.New(quota.Shared("memory", memory, max(body+file, page, api.OpenAIFactor*body))),
		Disk:   quota.New(quota.Shared("disk space", int64(l.RequestDiskBytes), max(form, int64(l.ImportBytes)))),
		Folder: filepath.Join(cfg.DataDir, folder),
	}, nil
}

// limitMemory has the garbage collector keep to nine tenths of the memory that the
// process's container has, unless GOMEMLIMIT says how much, and returns the limit;
// math.MaxInt64 if there is none.
func limitMemory() int64 {
	_, _ = memlimit.Set(memlimit.WithRatio(0.9)) // it fails where there are no containers
	return debug.SetMemoryLimit(-1)
}
