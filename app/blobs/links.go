package blobs

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"bobbin/app/core"
)

// Lifetimes of a link.
const (
	DefaultLinkTime = 10 * time.Minute
	MaxLinkTime     = time.Hour
)

// Link returns a URL that gives anyone who has it the file, for the given time; 0 =
// DefaultLinkTime.
//
// Errors: ErrNotFound; ErrInvalid for a time over MaxLinkTime.
func (s *Service) Link(ctx context.Context, tenant core.Tenant, id core.BlobID, lifetime time.Duration) (core.BlobLink, error) {
	if lifetime == 0 {
		lifetime = DefaultLinkTime
	}
	if lifetime < time.Second || lifetime > MaxLinkTime {
		return core.BlobLink{}, fieldError("expires_in", "must be 1 to %d seconds", int(MaxLinkTime.Seconds()))
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

// signLink returns the signature of a link.
func (s *Service) signLink(ctx context.Context, id core.BlobID, expires int64) (string, error) {
	key, err := s.Store.SigningKey(ctx)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "link to a file\n%s\n%d", id, expires)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}
