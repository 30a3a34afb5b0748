package app

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/quota"
)

// maxRequestMemory is the most memory that requests take of which nobody configured how much.
const maxRequestMemory = 256 << 20

// openSpace makes what bounds the memory and the disk space that requests take.
func openSpace(cfg config.Config) (handlers.Space, error) {
	// The data folder is this process's own: what is there is of one that died.
	folder := filepath.Join(cfg.DataDir, "requests")
	if err := os.RemoveAll(folder); err != nil {
		return handlers.Space{}, fmt.Errorf("data folder: %w", err)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return handlers.Space{}, fmt.Errorf("data folder: %w", err)
	}
	l := cfg.Limits
	body, file := int64(l.BodyBytes), int64(cfg.Files.Bytes)
	memory := cmp.Or(int64(l.RequestMemoryBytes), min(maxRequestMemory, limitMemory()/4))
	page := int64(core.MaxMessagePageBytes + core.MaxPageBytes)
	form := body + int64(cfg.Files.PerMessage)*file + 1<<20
	return handlers.Space{
		Memory: quota.New(quota.Shared("memory", memory, max(body+file, page))),
		Disk:   quota.New(quota.Shared("disk space", int64(l.RequestDiskBytes), max(form, int64(l.ImportBytes)))),
		Folder: folder,
	}, nil
}

// limitMemory has the garbage collector keep to nine tenths of the memory that the
// process's container has, unless GOMEMLIMIT says how much, and returns the limit;
// math.MaxInt64 if there is none.
func limitMemory() int64 {
	_, _ = memlimit.Set(memlimit.WithRatio(0.9)) // it fails where there are no containers
	return debug.SetMemoryLimit(-1)
}
