package memories

import (
	"context"
	"log/slog"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/embed"
)

// rows is what is needed of the stored memories. The methods return core errors.
type rows interface {
	Create(ctx context.Context, m core.Memory) (core.Memory, error)
	Get(ctx context.Context, scope core.Scope, id core.MemoryID) (core.Memory, error)
	Found(ctx context.Context, scope core.Scope, ids []core.MemoryID) ([]core.Memory, error)
	List(ctx context.Context, scope core.Scope, q core.PageQuery) (core.Page[core.Memory], error)
	Update(ctx context.Context, scope core.Scope, m core.Memory) (core.Memory, error)
	Delete(ctx context.Context, scope core.Scope, id core.MemoryID) error
}

// vectors is what search needs of storage.
type vectors interface {
	Count(ctx context.Context, scope core.Scope, space core.VectorSpace) (int, error)
	Vectors(ctx context.Context, scope core.Scope, q core.VectorQuery) ([]core.MemoryVector, error)
	Changes(ctx context.Context, owner string, after int64, space core.VectorSpace) (core.MemoryChanges, error)
}

// staleRows is what reindexing needs of storage.
type staleRows interface {
	CountStale(ctx context.Context, scope core.Scope, space core.VectorSpace) (int, error)
	CountAllStale(ctx context.Context, space core.VectorSpace) (int, error)
	Stale(ctx context.Context, scope core.Scope, space core.VectorSpace, q core.PageQuery) (core.Page[core.Memory], error)
	SetVectors(ctx context.Context, list []core.Memory) (int, error)
}

// store is repositories.Memories.
type store interface {
	rows
	vectors
	staleRows
}

// DefaultIndexBytes bounds the vectors that are kept in memory.
const DefaultIndexBytes = 256 << 20

// DefaultEmbedTime is how long one call of the embedder may take, with repetitions.
const DefaultEmbedTime = 30 * time.Second

// Options are what a Service is made of. Store and Embedder are required.
type Options struct {
	Store    store
	Embedder embed.Embedder
	Matches  string // core.MatchesWords or core.MatchesMeaning, as the embedder does; empty = meaning

	IndexBytes int64         // of vectors in memory; 0 = DefaultIndexBytes, negative = none are kept
	EmbedTime  time.Duration // 0 = DefaultEmbedTime
	Logger     *slog.Logger  // nil = nobody hears
}

// Service is the use cases of memories. Safe for concurrent use.
type Service struct {
	store     store
	embedder  embed.Embedder
	matches   string
	embedTime time.Duration
	indexes   *indexes
	log       *slog.Logger
}

// New returns the use cases.
func New(o Options) *Service {
	if o.Matches == "" {
		o.Matches = core.MatchesMeaning
	}
	if o.IndexBytes == 0 {
		o.IndexBytes = DefaultIndexBytes
	}
	if o.EmbedTime <= 0 {
		o.EmbedTime = DefaultEmbedTime
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Service{
		store: o.Store, embedder: o.Embedder, matches: o.Matches, embedTime: o.EmbedTime, log: o.Logger,
		indexes: newIndexes(o.Store, o.IndexBytes, o.Logger),
	}
}

// Create stores a new memory of the scope's owner and user from what callers choose,
// content and metadata. It embeds the content; if that fails the memory is stored
// without, and the notice says why. ErrInvalid says what is wrong with which field.
func (s *Service) Create(ctx context.Context, scope core.Scope, in core.Memory) (core.SavedMemory, error) {
	in, err := checked(in)
	if err != nil {
		return core.SavedMemory{}, err
	}
	m := core.Memory{Owner: scope.Owner, UserID: scope.User, Content: in.Content, Metadata: in.Metadata}
	notice, err := s.embedInto(ctx, &m)
	if err != nil {
		return core.SavedMemory{}, err
	}
	if m, err = s.store.Create(ctx, m); err != nil {
		return core.SavedMemory{}, err
	}
	return core.SavedMemory{Memory: s.shown(m), Notice: notice}, nil
}

// embedInto gives the memory its vector, or returns why it has none. The error is
// for a caller who is gone.
func (s *Service) embedInto(ctx context.Context, m *core.Memory) (notice string, err error) {
	list, err := s.embed(ctx, []string{m.Content})
	if err == nil {
		m.Embedding, m.EmbeddingModel = list[0], s.embedder.Model()
		return "", nil
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	s.log.WarnContext(ctx, "memory not embedded", "model", s.embedder.Model(), "err", err)
	return "the memory is stored, but search does not find it before it is reindexed: " + reason(err), nil
}

// Get returns one memory.
func (s *Service) Get(ctx context.Context, scope core.Scope, id core.MemoryID) (core.Memory, error) {
	m, err := s.store.Get(ctx, scope, id)
	return s.shown(m), err
}

// List returns a page of the scope's memories, the newest first.
func (s *Service) List(ctx context.Context, scope core.Scope, q core.PageQuery) (core.Page[core.Memory], error) {
	page, err := s.store.List(ctx, scope, q)
	for i, m := range page.Items {
		page.Items[i] = s.shown(m)
	}
	return page, err
}

// Update replaces content and metadata of the memory that in names by its id. Only
// another content is embedded anew.
func (s *Service) Update(ctx context.Context, scope core.Scope, in core.Memory) (core.SavedMemory, error) {
	in, err := checked(in)
	if err != nil {
		return core.SavedMemory{}, err
	}
	old, err := s.store.Get(ctx, scope, in.ID)
	if err != nil {
		return core.SavedMemory{}, err
	}
	m, notice := core.Memory{ID: in.ID, Content: in.Content, Metadata: in.Metadata}, ""
	if old.Content != in.Content {
		if notice, err = s.embedInto(ctx, &m); err != nil {
			return core.SavedMemory{}, err
		}
	}
	if m, err = s.store.Update(ctx, scope, m); err != nil {
		return core.SavedMemory{}, err
	}
	return core.SavedMemory{Memory: s.shown(m), Notice: notice}, nil
}

// Delete removes a memory for good.
func (s *Service) Delete(ctx context.Context, scope core.Scope, id core.MemoryID) error {
	return s.store.Delete(ctx, scope, id)
}

// shown returns the memory as callers see it.
func (s *Service) shown(m core.Memory) core.Memory {
	m.Stale, m.Embedding = s.isStale(m), nil
	return m
}

// isStale reports whether search does not find the memory.
func (s *Service) isStale(m core.Memory) bool {
	d := s.embedder.Dimension()
	return m.EmbeddingModel != s.embedder.Model() || d > 0 && m.Dimension != d
}
