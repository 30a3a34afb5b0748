package talk

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

// maxAttached bounds what is read of a file, in bytes; the server takes less.
const maxAttached = 256 << 20

// attach uploads a file, which goes with the next message; without a path it tells
// what will.
func (c *Conversation) attach(ctx context.Context, path string) error {
	if path == "" {
		if len(c.attached) == 0 {
			return core.Errorf(core.ErrInvalid, "nothing is attached; write /attach and the path of a file")
		}
		for _, p := range c.attached {
			c.say("· ", "goes with the next message: "+p.Describe())
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
	c.say("· ", "attached to the next message: "+part.Describe())
	return nil
}

// readFile reads a file that the user names, as a shell would take the name. Errors
// are sentences.
func readFile(path string) ([]byte, error) {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			path = filepath.Join(home, rest)
		}
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, core.Errorf(core.ErrNotFound, "there is no file %s", path)
	case errors.Is(err, fs.ErrPermission):
		return nil, core.Errorf(core.ErrForbidden, "the file %s may not be read", path)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", path, err)
	case info.IsDir():
		return nil, core.Errorf(core.ErrInvalid, "%s is a folder; attach its files one by one", path)
	case !info.Mode().IsRegular():
		return nil, core.Errorf(core.ErrInvalid, "%s is not a file", path)
	case info.Size() > maxAttached:
		return nil, core.Errorf(core.ErrTooLarge, "the file %s is too large: it has %s", path, core.ByteSize(info.Size()))
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrPermission) {
		return nil, core.Errorf(core.ErrForbidden, "the file %s may not be read", path)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return data, nil
}
