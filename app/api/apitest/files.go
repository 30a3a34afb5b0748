package apitest

import (
	"context"

	"bobbin/app/core"
)

// Files is the backend as the use cases and the repository of images and files.
type Files struct{ *Backend }

// Content is that of the one file, and ContentHash its hash.
const (
	Content     = "a,b\r\n1,2\r\n"
	ContentHash = "ea14f99c47575613ab22111122c847728c61007f6bfd7b062d02fcb99df3feb0"
)

// blob is the one file.
func blob() core.Blob {
	return core.Blob{
		ID: BlobID, SessionID: SessionID, MediaType: "text/csv", Name: "numbers \u00fc.csv", Size: int64(len(Content)),
		SHA256: ContentHash, CreatedAt: Time(),
	}
}

// Upload answers the one file, under the name given.
func (f Files) Upload(ctx context.Context, scope core.Scope, u core.Upload) (core.Blob, error) {
	if err := f.called(ctx, "Upload", scope, u); err != nil {
		return core.Blob{}, err
	}
	b := blob()
	b.Name, b.SessionID, b.UserID = u.Name, u.SessionID, u.User
	return b, nil
}

// MaxBytes answers 1 KiB, and two files.
func (f Files) MaxBytes() (each int64, files int) { return 1 << 10, 2 }

// Open answers the one file.
func (f Files) Open(ctx context.Context, scope core.Scope, id core.BlobID) (core.Blob, []byte, error) {
	if err := f.called(ctx, "Open", scope, id); err != nil {
		return core.Blob{}, nil, err
	}
	if id != BlobID {
		return core.Blob{}, nil, missing("blob", id)
	}
	return blob(), []byte(Content), nil
}
