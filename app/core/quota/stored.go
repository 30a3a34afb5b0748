package quota

import (
	"context"
	"fmt"
	"sync"
	"time"

	"bobbin/app/core"
)

// CodeStorageFull is the code of requests that would store more than the caller may.
const CodeStorageFull = "storage_full"

// Stored limits how many bytes are stored for one end user and for one owner. The sums are read from
// the database and kept for a minute; until then what is admitted is added. So a limit may be
// exceeded by what other processes, and runs, store meanwhile. A nil *Stored allows everything. Safe
// for concurrent use.
type Stored struct {
	limits StoredLimits

	mu   sync.Mutex
	sums map[core.Tenant]*storedSum // guarded by mu
}

// StoredLimits are in bytes; 0 = no limit.
type StoredLimits struct {
	User, Owner int64
	// Sum returns what is stored for an owner, or for one end user of the owner.
	Sum func(ctx context.Context, of core.Tenant) (int64, error)
	// CheckDisk returns an error while the disk has little room; nil = not known.
	CheckDisk func() error
}

// storedSum is what is stored for one tenant.
type storedSum struct {
	mu    sync.Mutex
	bytes int64         // guarded by mu
	read  time.Time     // guarded by mu
	took  time.Duration // to read it; guarded by mu
}

const (
	maxSumAge  = time.Minute
	maxSums    = 10_000 // tenants whose sums are kept
	sumReading = 20     // a full tenant's sum is read at most for one twentieth of the time
)

// NewStored returns the limits of what is stored.
func NewStored(limits StoredLimits) *Stored {
	return &Stored{limits: limits, sums: map[core.Tenant]*storedSum{}}
}

// Admit returns ErrTooLarge with CodeStorageFull if there is no room for so many bytes more.
func (s *Stored) Admit(ctx context.Context, tenant core.Tenant, more int64) error {
	if work, keyed := core.KeyedWorkFrom(ctx); s == nil || keyed && work.Result != nil { // it is stored already
		return nil
	}
	if tenant.User != "" && s.limits.User > 0 {
		if err := s.admit(ctx, tenant, more, s.limits.User, "limits.user_bytes"); err != nil {
			return err
		}
	}
	if s.limits.Owner > 0 {
		return s.admit(ctx, core.Tenant{Owner: tenant.Owner}, more, s.limits.Owner, "limits.owner_bytes")
	}
	return nil
}

// AdmitCopy is Admit for what can wait until the disk has room again: imports, forks and files.
func (s *Stored) AdmitCopy(ctx context.Context, tenant core.Tenant, more int64) error {
	if err := s.CheckDisk(); err != nil {
		return err
	}
	return s.Admit(ctx, tenant, more)
}

// CheckDisk returns ErrUnavailable while the disk has little room.
func (s *Stored) CheckDisk() error {
	if s == nil || s.limits.CheckDisk == nil {
		return nil
	}
	return s.limits.CheckDisk()
}

func (s *Stored) admit(ctx context.Context, of core.Tenant, more, limit int64, setting string) error {
	s.mu.Lock()
	sum := s.sums[of]
	if sum == nil { // at first one that must be read
		if len(s.sums) >= maxSums {
			clear(s.sums)
		}
		sum = &storedSum{}
		s.sums[of] = sum
	}
	s.mu.Unlock()
	sum.mu.Lock()
	defer sum.mu.Unlock()
	age := time.Since(sum.read)
	if age > maxSumAge || sum.bytes+more > limit && age > sumReading*sum.took {
		begin := time.Now()
		bytes, err := s.limits.Sum(ctx, of)
		if err != nil {
			return fmt.Errorf("sum of what is stored: %w", err)
		}
		sum.bytes, sum.read, sum.took = bytes, time.Now(), time.Since(begin)
	}
	if sum.bytes+more > limit {
		return &core.Error{Kind: core.ErrTooLarge, Code: CodeStorageFull, Message: fmt.Sprintf(
			"the stored texts use %s of %s, so there is no room for %s more: delete sessions, or have the operator raise %s",
			core.ByteSize(sum.bytes), core.ByteSize(limit), core.ByteSize(more), setting)}
	}
	sum.bytes += more
	return nil
}
