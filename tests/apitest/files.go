package apitest

import (
	"cmp"
	"context"
	"time"

	"bobbin/app/core"
)

// Files is the backend as the file service and blob repository.
type Files struct {
	*Backend
	core.BlobStore // the methods that the API does not call
}

// Content is that of the one file, and ContentHash its hash.
const (
	Content     = "a,b\r\n1,2\r\n"
	ContentHash = "ea14f99c47575613ab22111122c847728c61007f6bfd7b062d02fcb99df3feb0"
)

// sampleBlob is the one file.
func sampleBlob() core.Blob {
	return core.Blob{
		ID: BlobID, SessionID: SessionID, MediaType: "text/csv", Name: "numbers \u00fc.csv", Size: int64(len(Content)),
		SHA256: ContentHash, CreatedAt: Time(),
	}
}

// Upload answers the one file with the given name.
func (f Files) Upload(ctx context.Context, tenant core.Tenant, u core.Upload) (core.Blob, error) {
	b := sampleBlob()
	b.Name, b.SessionID, b.UserID = u.Name, u.SessionID, u.User
	return b, f.recordCall(ctx, "Upload", tenant, u)
}

// Link answers a link that expires at Time.
func (f Files) Link(ctx context.Context, tenant core.Tenant, id core.BlobID, lifetime time.Duration) (core.BlobLink, error) {
	return core.BlobLink{URL: "/api/v1/blobs/" + string(id) + "/content?expires=1&signature=good", ExpiresAt: Time()}, cmp.Or(f.recordCall(ctx, "Link", tenant, id, lifetime), missing("blob", id, BlobID))
}

// Follow answers the one file for the signature "good".
func (f Files) Follow(ctx context.Context, id core.BlobID, expires int64, signature string) (core.Blob, error) {
	err := cmp.Or(f.recordCall(ctx, "Follow", core.Tenant{}, id, expires, signature), missing("blob", id, BlobID))
	if signature == "old" {
		err = &core.Error{Kind: core.ErrNotFound, Code: core.CodeLinkExpired, Message: "this link has expired"}
	}
	b := sampleBlob()
	b.Owner = "local"
	return b, cmp.Or(err, missing("signature", signature, "good"))
}

// List answers the one file.
func (f Files) List(ctx context.Context, tenant core.Tenant, q core.BlobQuery) (core.Page[core.Blob], error) {
	return core.Page[core.Blob]{Items: []core.Blob{sampleBlob()}}, f.recordCall(ctx, "List", tenant, q)
}

// Delete accepts the one file.
func (f Files) Delete(ctx context.Context, tenant core.Tenant, id core.BlobID) error {
	return cmp.Or(f.recordCall(ctx, "Delete", tenant, id), missing("blob", id, BlobID))
}

// MaxBytes answers 1 KiB, and two files.
func (f Files) MaxBytes() (each int64, files int) { return 1 << 10, 2 }

// Get answers the one file.
func (f Files) Get(ctx context.Context, tenant core.Tenant, id core.BlobID) (core.Blob, error) {
	return sampleBlob(), cmp.Or(f.recordCall(ctx, "Get", tenant, id), missing("blob", id, BlobID))
}

// Open answers the one file with its content.
func (f Files) Open(ctx context.Context, tenant core.Tenant, id core.BlobID) (core.Blob, []byte, error) {
	return sampleBlob(), []byte(Content), cmp.Or(f.recordCall(ctx, "Open", tenant, id), missing("blob", id, BlobID))
}
