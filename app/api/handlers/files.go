package handlers

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// How many uploads are read at once: each takes the memory of its file.
const (
	maxUploads         = 32
	maxUploadsPerOwner = 8
	maxUploadsPerUser  = 2
)

// maxField bounds a field of a form besides the message, in bytes.
const maxField = 1 << 10

// fileService takes images and files in.
type fileService interface {
	Upload(ctx context.Context, scope core.Scope, u core.Upload) (core.Blob, error)
	// MaxBytes returns the size of the largest file, and how many a message may have.
	MaxBytes() (each int64, files int)
}

// blobStore has the images and files.
type blobStore interface {
	Open(ctx context.Context, scope core.Scope, id core.BlobID) (core.Blob, []byte, error)
}

// Files answers /api/v1/blobs, and reads the forms that have files. Safe for
// concurrent use.
type Files struct {
	files fileService
	blobs blobStore
	slots *Streams
}

// NewFiles returns the handlers of images and files.
func NewFiles(s Services) *Files {
	slots := NewStreams(Limits{Streams: maxUploads, StreamsPerOwner: maxUploadsPerOwner, StreamsPerUser: maxUploadsPerUser})
	return &Files{files: s.Files, blobs: s.Blobs, slots: slots}
}

// Upload stores the form's one file: 201.
func (h *Files) Upload(c *gin.Context) error {
	place, err := h.slots.hold(c)
	if err != nil {
		return err
	}
	defer h.slots.release(place)
	if !isForm(c.Request) {
		return wantsForm()
	}
	u, given := core.Upload{}, false
	each, _ := h.files.MaxBytes()
	err = readForm(c.Request, func(p *multipart.Part) (err error) {
		switch p.FormName() {
		case "session_id":
			u.SessionID, err = readField[core.SessionID](p)
		case "user_id":
			u.User, err = readField[string](p)
		case "file":
			if given {
				return formFault("file", "is given more than once; upload files one by one")
			}
			given = true
			u.Name = p.FileName()
			u.Data, err = readPart(p, each)
		default:
			return invalid([]core.FieldError{unknown(p.FormName(), "field", []string{"file", "session_id", "user_id"})})
		}
		return err
	})
	if err != nil {
		return err
	}
	if !given {
		return formFault("file", "is missing")
	}
	blob, err := h.files.Upload(c.Request.Context(), scopeOf(c), u)
	if err != nil {
		return err
	}
	c.Header("Location", "/api/v1/blobs/"+string(blob.ID))
	return answer(c, http.StatusCreated, blob)
}

// Get answers the content of a blob, to be saved and not to be shown: nothing in it
// runs in our name.
func (h *Files) Get(c *gin.Context) error {
	id, err := idParam[core.BlobID](c, "blob")
	if err != nil {
		return err
	}
	blob, data, err := h.blobs.Open(c.Request.Context(), scopeOf(c), id)
	if err != nil {
		return err
	}
	begin(c, http.StatusOK, len(data))
	header := c.Writer.Header()
	header.Set("Content-Type", servedType(blob.MediaType))
	header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": blob.Name}))
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
	header.Set("ETag", `"`+blob.SHA256+`"`)
	header.Set("Cache-Control", "private, no-cache") // the same for ever, but not for everybody
	http.ServeContent(c.Writer, c.Request, "", blob.CreatedAt, bytes.NewReader(data))
	return nil
}

// servedType returns the media type under which a blob is given back: text is plain
// text, whatever it was.
func servedType(mediaType string) string {
	if strings.HasPrefix(mediaType, "text/") && mediaType != "text/csv" {
		return "text/plain; charset=utf-8"
	}
	if strings.HasPrefix(mediaType, "text/") {
		return mediaType + "; charset=utf-8"
	}
	return mediaType
}

// message reads a message that comes as a form: the field message has what else is
// the body, each field file is a file that goes with it. The files are stored as
// they come, so that only one of them is in memory.
func (h *Files) message(c *gin.Context, session core.SessionID) (newMessage, error) {
	var body newMessage
	var parts []filePart
	place, err := h.slots.hold(c)
	if err != nil {
		return body, err
	}
	defer h.slots.release(place)
	given := false
	each, most := h.files.MaxBytes()
	err = readForm(c.Request, func(p *multipart.Part) error {
		switch p.FormName() {
		case "message":
			if given {
				return formFault("message", "is given more than once")
			}
			given = true
			data, err := io.ReadAll(p) // within the limit of the whole body
			if err != nil {
				return BodyFault(err)
			}
			return Decode(data, &body)
		case "file":
			if len(parts) >= most {
				return core.Errorf(core.ErrInvalid, "the message has too many files: at most %d are taken", most)
			}
			data, err := readPart(p, each)
			if err != nil {
				return err
			}
			blob, err := h.files.Upload(c.Request.Context(), scopeOf(c), core.Upload{SessionID: session, Name: p.FileName(), Data: data})
			parts = append(parts, filePart{BlobID: blob.ID})
			return err
		default:
			return invalid([]core.FieldError{unknown(p.FormName(), "field", []string{"message", "file"})})
		}
	})
	body.Parts = append(body.Parts, parts...)
	return body, err
}

// filePart is an image or a file of a message, as its sender names it.
type filePart struct {
	Type   string      `json:"type"`
	BlobID core.BlobID `json:"blob_id"`
	Name   string      `json:"name"`
}

// partsOf returns the parts as the use cases take them; nil stays nil.
func partsOf(given []filePart) []core.Part {
	if given == nil {
		return nil
	}
	parts := make([]core.Part, 0, len(given))
	for _, p := range given {
		parts = append(parts, core.Part{Type: p.Type, BlobID: p.BlobID, Name: p.Name})
	}
	return parts
}

// isForm reports whether the body is a form that may have files.
func isForm(r *http.Request) bool {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && media == "multipart/form-data"
}

func wantsForm() error {
	return &core.Error{Kind: core.ErrInvalid, Code: CodeMediaType, Message: "the body must be a form with the field file: Content-Type: multipart/form-data"}
}

// formFault returns the error about one field of a form.
func formFault(field, detail string) error {
	return invalid([]core.FieldError{{Field: field, Detail: detail}})
}

// readForm gives the parts of a form to take, one after the other, to its end.
func readForm(r *http.Request, take func(*multipart.Part) error) error {
	form, err := r.MultipartReader()
	if err != nil {
		return malformed("the form cannot be read: %s", err)
	}
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return BodyFault(err)
		}
		if err := take(part); err != nil {
			return err
		}
	}
}

// readPart reads a file of at most that many bytes.
func readPart(p *multipart.Part, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(p, most+1))
	switch {
	case err != nil:
		return nil, BodyFault(err)
	case int64(len(data)) > most:
		return nil, core.Errorf(core.ErrTooLarge, "the file %s is too large: at most %s are taken", shorten(p.FileName()), core.ByteSize(most))
	default:
		return data, nil
	}
}

// readField reads a short field of a form.
func readField[T ~string](p *multipart.Part) (T, error) {
	data, err := io.ReadAll(io.LimitReader(p, maxField+1))
	switch {
	case err != nil:
		return "", BodyFault(err)
	case len(data) > maxField:
		return "", formFault(p.FormName(), "is too long")
	default:
		return T(data), nil
	}
}
