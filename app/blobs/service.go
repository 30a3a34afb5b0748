// Package blobs accepts images and files and attaches them to messages.
//
// The type of an upload is determined by its bytes alone (attach.Sniff). A file is stored once
// for each owner and hash, and kept as long as a message refers to it. Without a message it is
// swept after a day. Reading is done by the repository.
package blobs

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/attach"
	"bobbin/app/core/quota"
)

// Limits bound what callers may upload.
type Limits struct {
	Bytes      int64    // of one file
	PerMessage int      // files of one message
	Total      int64    // bytes of one owner
	User       int64    // bytes of one end user; 0 = no limit
	Types      []string // media types such as image/png or text/*
}

// Options configure a Service. All but Stored are required.
type Options struct {
	Store    core.BlobStore
	Sessions core.SessionStore
	Counter  core.TextCounter
	// ReadText returns the text of a document; ok = false if it has none to extract here.
	ReadText func(ctx context.Context, kind string, data []byte) (text core.DocumentText, ok bool, err error)
	Limits   Limits
	Stored   *quota.Stored // knows whether the disk has room; nil = it has
	Logger   *slog.Logger
}

// Service implements the use cases of images and files. Safe for concurrent use.
type Service struct{ Options }

// New returns a Service.
func New(o Options) *Service { return &Service{o} }

// Upload stores a file. Its type follows from its content. Uploading the same file again, for
// the same user under the same name, returns the existing blob.
//
// Errors: ErrTooLarge for a file, or an owner, with too many bytes; ErrInvalid for a type that
// is not allowed or a file that is not what its first bytes say; ErrNotFound for the session;
// ErrForbidden; ErrUnavailable while the disk has little room.
func (s *Service) Upload(ctx context.Context, tenant core.Tenant, u core.Upload) (core.Blob, error) {
	if size := int64(len(u.Data)); size > s.Limits.Bytes {
		return core.Blob{}, core.Errorf(core.ErrTooLarge, "the file is too large: the maximum is %s", core.ByteSize(s.Limits.Bytes))
	}
	if err := s.Stored.CheckDisk(); err != nil {
		return core.Blob{}, err
	}
	user, err := s.userOf(ctx, tenant, u)
	if err != nil {
		return core.Blob{}, err
	}
	name := attach.Name(u.Name)
	found, err := attach.Sniff(u.Data, name)
	if err != nil {
		return core.Blob{}, err
	}
	if !attach.Allowed(s.Limits.Types, found.MediaType) {
		advice := attach.Advice(found.MediaType)
		if advice != "" {
			advice = "; " + advice
		}
		return core.Blob{}, core.Errorf(core.ErrInvalid, "the file is not accepted: it is %s%s; accepted types are %s", found.MediaType, advice, strings.Join(s.Limits.Types, ", "))
	}
	sum := sha256.Sum256(u.Data)
	b := core.Blob{
		Owner: tenant.Owner, UserID: user, SessionID: u.SessionID, MediaType: found.MediaType, Name: name, Size: int64(len(u.Data)),
		SHA256: hex.EncodeToString(sum[:]), Width: found.Width, Height: found.Height,
	}
	text, err := s.readText(ctx, &b, found, u.Data)
	if err != nil {
		return core.Blob{}, err
	}
	room := core.BlobRoom{Owner: s.Limits.Total}
	if tenant.User != "" {
		room.User = s.Limits.User
	}
	return s.Store.Put(ctx, b, core.BlobContent{Data: u.Data, Text: text}, room)
}

// readText returns the text of a document, and sets the blob's fields about its text.
func (s *Service) readText(ctx context.Context, b *core.Blob, found attach.Found, data []byte) (core.DocumentText, error) {
	if found.Document == "" {
		if attach.IsText(b.MediaType) {
			b.Tokens = s.Counter.Text(attach.Text(data))
		}
		return core.DocumentText{}, nil
	}
	text, ok, err := s.Store.Text(ctx, b.Owner, b.SHA256)
	if err == nil && !ok {
		text, ok, err = s.ReadText(ctx, found.Document, data)
	}
	switch {
	case err != nil:
		return text, err
	case ok:
		b.Extracted, b.Pages, b.Blank = true, text.Pages, text.Blank
		b.Tokens = s.Counter.Text(attach.Extracted(text.Text))
	case attach.IsText(b.MediaType): // HTML is used as source text
		b.Tokens = s.Counter.Text(attach.Text(data))
	}
	return text, nil
}

// MaxBytes returns the maximum size of a file and the maximum number of files in a message.
func (s *Service) MaxBytes() (each int64, files int) { return s.Limits.Bytes, s.Limits.PerMessage }

// userOf returns the user of a file: the caller's user, else the named one, else the session's.
func (s *Service) userOf(ctx context.Context, tenant core.Tenant, u core.Upload) (string, error) {
	if err := tenant.CheckUser(u.User); err != nil {
		return "", err
	}
	const most = 200
	if len(u.User) > most || core.CleanText(u.User) != u.User {
		return "", core.Errorf(core.ErrInvalid, "user_id must be valid UTF-8 without U+0000 and have at most %d bytes", most)
	}
	user := cmp.Or(u.User, tenant.User)
	if u.SessionID == "" {
		return user, nil
	}
	session, err := s.Sessions.Get(ctx, tenant, u.SessionID)
	if user == "" {
		user = session.UserID
	}
	return user, err
}

// Attach returns the parts of a message as they are stored. The sender chooses the blob, and
// optionally another name. ErrInvalid names the fault of each part; ErrNotFound for a blob that
// the caller does not have.
func (s *Service) Attach(ctx context.Context, tenant core.Tenant, asked []core.Part) ([]core.Part, error) {
	if len(asked) > s.Limits.PerMessage {
		return nil, fieldError("parts", "has %d files; a message may have at most %d", len(asked), s.Limits.PerMessage)
	}
	parts := make([]core.Part, 0, len(asked))
	for i, a := range asked {
		switch {
		case a.Type != "" && !a.Attached():
			return nil, fieldError(fieldName(i, "type"), "must be image or file")
		case a.BlobID == "":
			return nil, fieldError(fieldName(i, "blob_id"), "is missing; upload the file with POST /api/v1/blobs first")
		}
		b, err := s.Store.Get(ctx, tenant, a.BlobID)
		if err != nil {
			return nil, err
		}
		p := b.Part()
		if a.Type == core.PartImage && p.Type != core.PartImage {
			return nil, fieldError(fieldName(i, "type"), "is image, but the blob is %s", b.MediaType)
		}
		if a.Name != "" {
			p.Name = attach.Name(a.Name)
		}
		p.Tokens = attach.Tokens(p, b.Tokens, s.Counter.Text)
		parts = append(parts, p)
	}
	return parts, nil
}

// How often blobs are swept, and how long one may exist without a message.
const (
	sweepInterval = time.Hour
	orphanTime    = 24 * time.Hour
)

// Run sweeps unused blobs until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	return core.Every(ctx, sweepInterval, func(ctx context.Context) {
		swept, err := s.Store.Sweep(ctx, time.Now().Add(-orphanTime))
		switch {
		case ctx.Err() != nil:
		case err != nil:
			s.Logger.WarnContext(ctx, "files not swept", "err", err)
		case swept.Blobs > 0:
			s.Logger.InfoContext(ctx, "files swept", "files", swept.Blobs, "bytes", swept.Bytes)
		}
	})
}

func fieldName(i int, field string) string { return fmt.Sprintf("parts[%d].%s", i, field) }

func fieldError(field, format string, args ...any) error {
	var f core.Faults
	f.Add(field, format, args...)
	return f.Err()
}

// Lifetimes of a link.
const (
	defaultLinkTime = 10 * time.Minute
	maxLinkTime     = time.Hour
)

// Link returns a URL that gives anyone who has it the file, for the given time; 0 =
// defaultLinkTime.
//
// Errors: ErrNotFound; ErrInvalid for a time over maxLinkTime.
func (s *Service) Link(ctx context.Context, tenant core.Tenant, id core.BlobID, lifetime time.Duration) (core.BlobLink, error) {
	if lifetime == 0 {
		lifetime = defaultLinkTime
	}
	if lifetime < time.Second || lifetime > maxLinkTime {
		return core.BlobLink{}, fieldError("expires_in", "must be 1 to %d seconds", int(maxLinkTime.Seconds()))
	}
	if _, err := s.Store.Get(ctx, tenant, id); err != nil {
		return core.BlobLink{}, err
	}
	expires := time.Now().Add(lifetime).UTC().Truncate(time.Second)
	signature, err := s.signLink(ctx, id, expires.Unix())
	if err != nil {
		return core.BlobLink{}, err
	}
	query := url.Values{"expires": {strconv.FormatInt(expires.Unix(), 10)}, "signature": {signature}}
	return core.BlobLink{URL: "/api/v1/blobs/" + string(id) + "/content?" + query.Encode(), ExpiresAt: expires}, nil
}

// Follow returns the file of a link. A link without a valid signature causes no lookup.
//
// Errors: ErrNotFound, with core.CodeLinkExpired or core.CodeFileDeleted for a link with a
// valid signature.
func (s *Service) Follow(ctx context.Context, id core.BlobID, expires int64, signature string) (core.Blob, error) {
	want, err := s.signLink(ctx, id, expires)
	if err != nil {
		return core.Blob{}, err
	}
	if !hmac.Equal([]byte(want), []byte(signature)) {
		return core.Blob{}, core.Errorf(core.ErrNotFound, "this link is not valid; request one with POST /api/v1/blobs/{id}/link")
	}
	if time.Now().Unix() >= expires {
		return core.Blob{}, &core.Error{Kind: core.ErrNotFound, Code: core.CodeLinkExpired, Message: "this link has expired; request a new one with POST /api/v1/blobs/{id}/link"}
	}
	b, err := s.Store.Find(ctx, id)
	if errors.Is(err, core.ErrNotFound) {
		return b, &core.Error{Kind: core.ErrNotFound, Code: core.CodeFileDeleted, Message: "the file was deleted"}
	}
	return b, err
}

func (s *Service) signLink(ctx context.Context, id core.BlobID, expires int64) (string, error) {
	key, err := s.Store.SigningKey(ctx)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "link to a file\n%s\n%d", id, expires)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}
