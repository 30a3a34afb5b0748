package memories

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/quota"
	"bobbin/app/db/repositories"
)

// defaultEmbedTime limits one call of the embedder, including retries.
const defaultEmbedTime = 30 * time.Second

// Options configure a Service. All but Stored and EmbedTime are required.
type Options struct {
	Store    *repositories.Memories
	Embedder llm.Embedder
	Matches  string // what the embedder matches: core.MatchesWords or core.MatchesMeaning

	Stored    *quota.Stored // nil = no limit
	EmbedTime time.Duration // 0 = defaultEmbedTime
	Logger    *slog.Logger
}

// Service implements the use cases of memories. Safe for concurrent use.
type Service struct{ Options }

// New returns a Service.
func New(o Options) *Service {
	if o.EmbedTime <= 0 {
		o.EmbedTime = defaultEmbedTime
	}
	return &Service{o}
}

// Create stores a new memory of the scope's owner and user, with content and metadata from the
// caller. It embeds the content; if that fails, the memory is stored without a vector, and the
// notice says why. ErrInvalid names the invalid fields.
func (s *Service) Create(ctx context.Context, tenant core.Tenant, in core.Memory) (core.SavedMemory, error) {
	in, err := checkMemory(in)
	if err != nil {
		return core.SavedMemory{}, err
	}
	m := core.Memory{Owner: tenant.Owner, UserID: tenant.User, Content: in.Content, Metadata: in.Metadata}
	notice, err := s.embedInto(ctx, &m)
	if err == nil {
		err = s.Stored.Admit(ctx, tenant, m.StoredBytes())
	}
	if err != nil {
		return core.SavedMemory{}, err
	}
	if m, err = s.Store.Create(ctx, m); err != nil {
		return core.SavedMemory{}, err
	}
	return core.SavedMemory{Memory: s.publicMemory(m), Notice: notice}, nil
}

// embedInto sets the memory's vector, or returns why there is none. The error means that the
// caller has gone.
func (s *Service) embedInto(ctx context.Context, m *core.Memory) (notice string, err error) {
	list, err := s.embedTexts(ctx, []string{m.Content})
	if err == nil {
		m.Embedding, m.EmbeddingModel = list[0], s.Embedder.Model()
		return "", nil
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	s.Logger.WarnContext(ctx, "memory not embedded", "model", s.Embedder.Model(), "err", err)
	return "the memory is stored, but search does not find it until it is reindexed: " + reasonOf(err), nil
}

// Get returns one memory.
func (s *Service) Get(ctx context.Context, tenant core.Tenant, id core.MemoryID) (core.Memory, error) {
	m, err := s.Store.Get(ctx, tenant, id)
	return s.publicMemory(m), err
}

// List returns a page of the scope's memories, the newest first.
func (s *Service) List(ctx context.Context, tenant core.Tenant, q core.PageQuery) (core.Page[core.Memory], error) {
	page, err := s.Store.List(ctx, tenant, q)
	for i, m := range page.Items {
		page.Items[i] = s.publicMemory(m)
	}
	return page, err
}

// Update replaces content and metadata of the memory with in's id. Only changed content is
// embedded again.
func (s *Service) Update(ctx context.Context, tenant core.Tenant, in core.Memory) (core.SavedMemory, error) {
	in, err := checkMemory(in)
	if err != nil {
		return core.SavedMemory{}, err
	}
	old, err := s.Store.Get(ctx, tenant, in.ID)
	if err != nil {
		return core.SavedMemory{}, err
	}
	m, notice := core.Memory{ID: in.ID, Content: in.Content, Metadata: in.Metadata}, ""
	if old.Content != in.Content {
		if notice, err = s.embedInto(ctx, &m); err != nil {
			return core.SavedMemory{}, err
		}
	}
	if err := s.Stored.Admit(ctx, tenant, m.StoredBytes()); err != nil {
		return core.SavedMemory{}, err
	}
	if m, err = s.Store.Update(ctx, tenant, m); err != nil {
		return core.SavedMemory{}, err
	}
	return core.SavedMemory{Memory: s.publicMemory(m), Notice: notice}, nil
}

func (s *Service) publicMemory(m core.Memory) core.Memory {
	d := s.Embedder.Dimension()
	m.Stale, m.Embedding = m.EmbeddingModel != s.Embedder.Model() || d > 0 && m.Dimension != d, nil
	return m
}

// Limits of what callers may send, in bytes.
const (
	maxContent  = 32 << 10
	maxMetadata = 16 << 10
	maxQuery    = 8 << 10
)

// checkText returns the text as it is stored, and adds a fault if it is too long or empty.
func checkText(f *core.Faults, field, value string, most int) string {
	if strings.TrimSpace(core.CleanText(value)) == "" {
		f.Add(field, "is empty")
	}
	return f.Text(field, value, most)
}

// checkMemory returns the memory as it is stored, or what is wrong with it.
func checkMemory(m core.Memory) (core.Memory, error) {
	var f core.Faults
	m.Content = checkText(&f, "content", m.Content, maxContent)
	f.Metadata(m.Metadata, maxMetadata)
	return m, f.Err()
}
