package handlers

import (
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
	"bobbin/app/core/quota"
)

// Space is the memory and disk space that requests may use. Large bodies and downloads,
// which move at the caller's pace, are in files; memory is for processing.
type Space struct {
	Memory *quota.Quota // nil = no limit
	Disk   *quota.Quota // nil = no limit
	Folder string       // of the files; empty = the system's
	Body   int64        // max. bytes of the message of a form
}

// AnswerBytes is the memory that a GET request reserves in advance.
const AnswerBytes = 1 << 20

// SpoolPrefix begins the names of the files in Space.Folder.
const SpoolPrefix = "bobbin-request-"

const chargeKey = "space"

// charge is where a request's body is kept, and what is charged for it.
type charge struct {
	space Space
	hold  *quota.Hold // on memory; nil = no limit
}

// Charge charges what the request reads and answers to the hold on the space's memory.
func Charge(c *gin.Context, space Space, hold *quota.Hold) { c.Set(chargeKey, charge{space, hold}) }

// ReserveMemory replaces what is reserved for the request by n bytes, as soon as there is room.
func ReserveMemory(c *gin.Context, n int64) error {
	return HoldOf(c).Resize(c.Request.Context(), n)
}

// HoldOf returns the request's hold on memory, for its body and its answer; nil = no limit.
func HoldOf(c *gin.Context) *quota.Hold { return chargeOf(c).hold }

// chargeOf returns what Charge set; the zero charge has no limits.
func chargeOf(c *gin.Context) charge {
	found, _ := c.Value(chargeKey).(charge)
	return found
}

// readAll reads all of r into memory, into a buffer with the initial capacity room.
func readAll(r io.Reader, room int64) ([]byte, error) {
	buf := bytes.NewBuffer(make([]byte, 0, room+bytes.MinRead))
	_, err := buf.ReadFrom(r)
	return buf.Bytes(), err
}

type chargeWriter struct{ *quota.Hold }

// Write is part of io.Writer. Its errors are those of the hold.
func (w chargeWriter) Write(p []byte) (int, error) { return len(p), w.Grow(int64(len(p))) }

// readRest returns the whole of a body of which begin was read. It is in a temporary file until it
// is complete and there is memory to decode it, so that one that waits holds none.
func readRest(c *gin.Context, begin []byte) ([]byte, error) {
	var counter core.JSONCounter
	file, err := spool(c, io.MultiReader(bytes.NewReader(begin), c.Request.Body), &counter)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	HoldOf(c).Release()
	if err := reserveJSON(c, file.size, counter.Values()); err != nil {
		return nil, err
	}
	data := make([]byte, file.size)
	_, err = io.ReadFull(file, data)
	return data, err
}

// spoolFile is a temporary file that is removed on Close.
type spoolFile struct {
	*os.File
	named bool // Close must remove the name
	size  int64
	hold  *quota.Hold
}

// spool reads all of r into a temporary file, whose content is charged to the caller: a slow upload or
// download holds no memory. What is read is also written to the others. The caller closes the file.
func spool(c *gin.Context, r io.Reader, others ...io.Writer) (*spoolFile, error) {
	space := chargeOf(c).space
	file, err := os.CreateTemp(space.Folder, SpoolPrefix)
	if err != nil {
		return nil, diskError(err)
	}
	// Without a name the file disappears with the process, however that ends. Not every
	// system can remove the name of an open file.
	f := &spoolFile{File: file, named: os.Remove(file.Name()) != nil, hold: space.Disk.Hold(scopeOf(c))}
	if f.size, err = io.Copy(io.MultiWriter(chargeWriter{f.hold}, spoolWriter{io.MultiWriter(append(others, file)...)}), r); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(BodyError(err), f.Close())
	}
	return f, nil
}

// Close removes the file.
func (f *spoolFile) Close() error {
	f.hold.Release()
	err := f.File.Close()
	if f.named {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// spooling has a place for each body of which a piece is being written: all pieces that have arrived
// at once would keep tokens and short requests from the processors.
var spooling = make(chan struct{}, max(runtime.GOMAXPROCS(0)/2, 1)) //nolint:gochecknoglobals // the processors are of the process

// spoolWriter writes pieces of bodies in turn. Errors are diskError.
type spoolWriter struct{ io.Writer }

// Write is part of io.Writer.
func (d spoolWriter) Write(p []byte) (int, error) {
	spooling <- struct{}{}
	defer func() { <-spooling }()
	n, err := d.Writer.Write(p)
	if err != nil {
		err = diskError(err)
	}
	return n, err
}

// diskError returns the error of a failed write to the disk.
func diskError(err error) error {
	return &core.Error{Kind: core.ErrUnavailable, Err: err, Message: "the server cannot write the body to disk; try again in a moment"}
}
