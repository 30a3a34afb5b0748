package chat

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bobbin/app/core"
)

// maxAttached is the maximum size of a file, in bytes; the server accepts less.
const maxAttached = 256 << 20

// attachFile uploads a file for the next message; without a path it lists the attached files.
func (c *Conversation) attachFile(ctx context.Context, path string) error {
	if path == "" {
		if len(c.attached) == 0 {
			return core.Errorf(core.ErrInvalid, "nothing is attached; use /attach <path>")
		}
		for _, p := range c.attached {
			c.printNotice("· ", "attached to the next message: "+p.Describe())
		}
		return nil
	}
	path = strings.Trim(path, `"'`)
	data, err := readFile(path)
	if err != nil {
		return err
	}
	blob, err := c.Service.UploadBlob(ctx, core.Upload{SessionID: c.Session.ID, Name: filepath.Base(path), Data: data})
	if err != nil {
		return err
	}
	part := blob.Part()
	part.Name = filepath.Base(path)
	c.attached = append(c.attached, part)
	c.printNotice("· ", "attached to the next message: "+part.Describe())
	return nil
}

// readFile reads a file whose name the user typed; ~ is the home directory. Errors are
// sentences.
func readFile(path string) ([]byte, error) {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			path = filepath.Join(home, rest)
		}
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, core.Errorf(core.ErrNotFound, "file not found: %s", path)
	case errors.Is(err, fs.ErrPermission):
		return nil, core.Errorf(core.ErrForbidden, "no permission to read %s", path)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", path, err)
	case info.IsDir():
		return nil, core.Errorf(core.ErrInvalid, "%s is a folder; attach its files individually", path)
	case !info.Mode().IsRegular():
		return nil, core.Errorf(core.ErrInvalid, "%s is not a file", path)
	case info.Size() > maxAttached:
		return nil, core.Errorf(core.ErrTooLarge, "%s is too large: %s", path, core.ByteSize(info.Size()))
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrPermission) {
		return nil, core.Errorf(core.ErrForbidden, "no permission to read %s", path)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return data, nil
}
