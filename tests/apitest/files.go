package apitest

import (
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
	if err := f.recordCall(ctx, "Upload", tenant, u); err != nil {
		return core.Blob{}, err
	}
	b := sampleBlob()
	b.Name, b.SessionID, b.UserID = u.Name, u.SessionID, u.User
	return b, nil
}

// Link answers a link that expires at Time.
func (f Files) Link(ctx context.Context, tenant core.Tenant, id core.BlobID, lifetime time.Duration) (core.BlobLink, error) {
	if err := f.recordCall(ctx, "Link", tenant, id, lifetime); err != nil {
		return core.BlobLink{}, err
	}
	if id != BlobID {
		return core.BlobLink{}, notFoundError("blob", id)
	}
	return core.BlobLink{URL: "/api/v1/blobs/" + string(id) + "/content?expires=1&signature=good", ExpiresAt: Time()}, nil
}

// Follow answers the one file for the signature "good".
func (f Files) Follow(ctx context.Context, id core.BlobID, expires int64, signature string) (core.Blob, error) {
	if err := f.recordCall(ctx, "Follow", core.Tenant{}, id, expires, signature); err != nil {
		return core.Blob{}, err
	}
	switch {
	case signature == "old":
		return core.Blob{}, &core.Error{Kind: core.ErrNotFound, Code: core.CodeLinkExpired, Message: "this link has expired"}
	case id != BlobID || signature != "good":
		return core.Blob{}, notFoundError("blob", id)
	}
	b := sampleBlob()
	b.Owner = "local"
	return b, nil
}

// List answers the one file.
func (f Files) List(ctx context.Context, tenant core.Tenant, q core.BlobQuery) (core.Page[core.Blob], error) {
	if err := f.recordCall(ctx, "List", tenant, q); err != nil {
		return core.Page[core.Blob]{}, err
	}
	return core.Page[core.Blob]{Items: []core.Blob{sampleBlob()}}, nil
}

// Delete accepts the one file.
func (f Files) Delete(ctx context.Context, tenant core.Tenant, id core.BlobID) error {
	if err := f.recordCall(ctx, "Delete", tenant, id); err != nil {
		return err
	}
	if id != BlobID {
		return notFoundError("blob", id)
	}
	return nil
}

// MaxBytes answers 1 KiB, and two files.
func (f Files) MaxBytes() (each int64, files int) { return 1 << 10, 2 }

// Get answers the one file.
func (f Files) Get(ctx context.Context, tenant core.Tenant, id core.BlobID) (core.Blob, error) {
	if err := f.recordCall(ctx, "Get", tenant, id); err != nil {
		return core.Blob{}, err
	}
	if id != BlobID {
		return core.Blob{}, notFoundError("blob", id)
	}
	return sampleBlob(), nil
}

// Open answers the one file with its content.
func (f Files) Open(ctx context.Context, tenant core.Tenant, id core.BlobID) (core.Blob, []byte, error) {
	if err := f.recordCall(ctx, "Open", tenant, id); err != nil {
		return core.Blob{}, nil, err
	}
	if id != BlobID {
		return core.Blob{}, nil, notFoundError("blob", id)
	}
	return sampleBlob(), []byte(Content), nil
}
