package blobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"strings"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/attach"
)

// store is what the use cases need of blobs in storage.
type store interface {
	Put(ctx context.Context, b core.Blob, data []byte, room core.BlobRoom) (core.Blob, error)
	Get(ctx context.Context, scope core.Scope, id core.BlobID) (core.Blob, error)
	Sweep(ctx context.Context, before time.Time) (core.SweptBlobs, error)
}

// sessionStore finds the session that an upload is for.
type sessionStore interface {
	Get(ctx context.Context, scope core.Scope, id core.SessionID) (core.Session, error)
}

// counter counts cl100k_base tokens.
type counter interface {
	Text(s string) int
}

// Limits bound what callers may upload.
type Limits struct {
	Bytes      int64    // of one file
	PerMessage int      // files of one message
	Total      int64    // bytes of one owner
	User       int64    // bytes of one end user; 0 = no limit
	Types      []string // media types such as image/png or text/*
}

// Options are what a Service is made of. All are required.
type Options struct {
	Store    store
	Sessions sessionStore
	Counter  counter
	Limits   Limits
	Logger   *slog.Logger
}

// Service is the use cases of images and files. Safe for concurrent use.
type Service struct{ Options }

// New returns a Service.
func New(o Options) *Service { return &Service{o} }

// Upload stores a file. What it is follows from its content. The same file of the
// same user under the same name gives the blob of the first time.
//
// Errors: ErrTooLarge for a file, or for an owner, with too many bytes; ErrInvalid
// for a kind that is not taken and for what is no file of the kind that it begins
// like; ErrNotFound for the session; ErrForbidden.
func (s *Service) Upload(ctx context.Context, scope core.Scope, u core.Upload) (core.Blob, error) {
	if size := int64(len(u.Data)); size > s.Limits.Bytes {
		return core.Blob{}, tooLarge(s.Limits.Bytes)
	}
	user, err := s.userOf(ctx, scope, u)
	if err != nil {
		return core.Blob{}, err
	}
	name := attach.Name(u.Name)
	found, err := attach.Sniff(u.Data, name)
	if err != nil {
		return core.Blob{}, err
	}
	if !attach.Allowed(s.Limits.Types, found.MediaType) {
		return core.Blob{}, core.Errorf(core.ErrInvalid, "the file cannot be taken: it is %s; taken are %s", found.MediaType, strings.Join(s.Limits.Types, ", "))
	}
	sum := sha256.Sum256(u.Data)
	b := core.Blob{
		Owner: scope.Owner, UserID: user, SessionID: u.SessionID, MediaType: found.MediaType, Name: name, Size: int64(len(u.Data)),
		SHA256: hex.EncodeToString(sum[:]), Width: found.Width, Height: found.Height,
	}
	if attach.IsText(b.MediaType) {
		b.Tokens = s.Counter.Text(attach.Text(u.Data))
	}
	room := core.BlobRoom{Owner: s.Limits.Total}
	if scope.User != "" {
		room.User = s.Limits.User
	}
	return s.Store.Put(ctx, b, u.Data, room)
}

// tooLarge is the error for a file over the limit.
func tooLarge(limit int64) error {
	return core.Errorf(core.ErrTooLarge, "the file is too large: at most %s are taken", core.ByteSize(limit))
}

// MaxBytes returns the size of the largest file that is taken, and how many one
// message may have.
func (s *Service) MaxBytes() (each int64, files int) { return s.Limits.Bytes, s.Limits.PerMessage }

// userOf returns whose file it is: the caller's user, else the one named, else the
// session's.
func (s *Service) userOf(ctx context.Context, scope core.Scope, u core.Upload) (string, error) {
	user := u.User
	const most = 200
	switch {
	case scope.User != "" && user != "" && user != scope.User:
		return "", core.Errorf(core.ErrForbidden, "you act for the user %q and not for %q", scope.User, core.Clip(user, most))
	case len(user) > most || core.CleanText(user) != user:
		return "", core.Errorf(core.ErrInvalid, "user_id must be valid UTF-8 without U+0000 and have at most %d bytes", most)
	case user == "":
		user = scope.User
	}
	if u.SessionID == "" {
		return user, nil
	}
	session, err := s.Sessions.Get(ctx, scope, u.SessionID)
	if user == "" {
		user = session.UserID
	}
	return user, err
}

// Attach returns the parts of a message as they are stored, from what its sender
// said of them: the blob, and a name if it is to be another one. ErrInvalid names
// what is wrong with each; ErrNotFound for a blob that the caller does not have.
func (s *Service) Attach(ctx context.Context, scope core.Scope, asked []core.Part) ([]core.Part, error) {
	if len(asked) > s.Limits.PerMessage {
		return nil, invalid("parts", "has %d files, at most %d are taken in one message", len(asked), s.Limits.PerMessage)
	}
	parts := make([]core.Part, 0, len(asked))
	for i, a := range asked {
		p, err := s.part(ctx, scope, a, i)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// part returns one part; i is its place.
func (s *Service) part(ctx context.Context, scope core.Scope, asked core.Part, i int) (core.Part, error) {
	switch {
	case asked.Type != "" && !asked.Attached():
		return core.Part{}, invalid(at(i, "type"), "must be image or file")
	case asked.BlobID == "":
		return core.Part{}, invalid(at(i, "blob_id"), "is missing; upload the file with POST /api/v1/blobs first")
	}
	b, err := s.Store.Get(ctx, scope, asked.BlobID)
	if err != nil {
		return core.Part{}, err
	}
	p := b.Part()
	if asked.Type == core.PartImage && p.Type != core.PartImage {
		return core.Part{}, invalid(at(i, "type"), "is image, and the blob is %s", b.MediaType)
	}
	if asked.Name != "" {
		p.Name = attach.Name(asked.Name)
	}
	p.Tokens = attach.Tokens(p, b.Tokens, s.Counter.Text)
	return p, nil
}

// How often blobs are swept, and how long one may wait for a message.
const (
	sweepInterval = time.Hour
	orphanTime    = 24 * time.Hour
)

// Run sweeps until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		swept, err := s.Store.Sweep(ctx, time.Now().Add(-orphanTime))
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			s.Logger.WarnContext(ctx, "files not swept", "err", err)
		case swept.Blobs > 0:
			s.Logger.InfoContext(ctx, "files swept", "files", swept.Blobs, "bytes", swept.Bytes)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}
