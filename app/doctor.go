package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/folder"
)

// Verdict is how a check of Doctor came out.
type Verdict string

// The verdicts, from good to bad.
const (
	VerdictOK   Verdict = "ok"
	VerdictWarn Verdict = "warn" // it works, and somebody should know
	VerdictFail Verdict = "fail" // it does not work
)

// Finding is what a check found.
type Finding struct {
	Check  string  `json:"check"`
	Status Verdict `json:"status"`
	Detail string  `json:"detail"`
	Do     string  `json:"do,omitempty"` // what to do about it
}

// Diagnosis is all findings.
type Diagnosis struct {
	Status   Verdict   `json:"status"` // the worst of them
	Findings []Finding `json:"checks"`
}

// DoctorOptions say what Doctor looks at.
type DoctorOptions struct {
	Config  config.Config
	Origins config.Origins
	Err     error // of loading the settings; not nil = nothing else can be checked
	Call    bool  // also call the model, for a few tokens
	Logger  *slog.Logger
}

// Times that single checks may take.
const (
	inspectTime = 20 * time.Second
	callTime    = 60 * time.Second
	reachTime   = 2 * time.Second
)

// doctor looks at one installation.
type doctor struct {
	DoctorOptions
	found  []Finding
	stored int // valid API keys of the database
}

// Doctor looks at everything that Bobbin needs, and says what to do about what is
// not right. It changes nothing and makes nothing.
func Doctor(ctx context.Context, o DoctorOptions) Diagnosis {
	d := &doctor{DoctorOptions: o}
	if d.settings(); o.Err == nil {
		d.folder()
		d.database(ctx)
		d.keys()
		d.replicas()
		d.tokens(ctx)
		d.models(ctx)
		d.clock()
		d.port(ctx)
	}
	out := Diagnosis{Status: VerdictOK, Findings: d.found}
	for _, f := range d.found {
		if f.Status == VerdictFail || f.Status == VerdictWarn && out.Status == VerdictOK {
			out.Status = f.Status
		}
	}
	return out
}

func (d *doctor) ok(check, format string, args ...any) {
	d.found = append(d.found, Finding{Check: check, Status: VerdictOK, Detail: fmt.Sprintf(format, args...)})
}

func (d *doctor) warn(check, detail, do string) {
	d.found = append(d.found, Finding{check, VerdictWarn, detail, do})
}

func (d *doctor) fail(check, detail, do string) {
	d.found = append(d.found, Finding{check, VerdictFail, detail, do})
}

// settings checks the configuration and who can read it.
func (d *doctor) settings() {
	if d.Err != nil {
		for _, line := range strings.Split(d.Err.Error(), "\n") {
			d.fail("configuration", line, "")
		}
		d.found[len(d.found)-1].Do = "correct what is named; the other checks need sound settings"
		return
	}
	set := 0
	files := map[string]bool{}
	for _, o := range d.Origins {
		if !d.Origins.Set(o.Key) {
			continue
		}
		set++
		if at := lineNumber.FindStringIndex(o.From); at != nil {
			files[o.From[:at[0]]] = true
		}
	}
	from := "no file"
	for file := range files {
		from = file
		d.secrets(file)
	}
	d.ok("configuration", "%s, %d besides the defaults", from, set)
}

// lineNumber is how the origin of a setting in a file ends.
var lineNumber = regexp.MustCompile(`:\d+$`)

// secrets complains about a file with secrets that others can read.
func (d *doctor) secrets(file string) {
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return
	}
	secret := false
	for _, key := range []string{"auth.keys", "database.url"} {
		o := d.Origins.Of(key)
		secret = secret || strings.HasPrefix(o.From, file+":") && strings.Contains(o.Value, "***")
	}
	if secret {
		d.warn("configuration", file+" holds secrets, and others on this machine can read it", "chmod 600 "+file)
	}
}

// leastFree is how much room there should be, in bytes.
const leastFree, littleFree = 64 << 20, 1 << 30

// folder checks the data folder.
func (d *doctor) folder() {
	dir := d.Config.DataDir
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		parent := filepath.Dir(filepath.Clean(dir))
		for parent != "." && parent != "/" && errors.Is(statError(parent), fs.ErrNotExist) {
			parent = filepath.Dir(parent)
		}
		if err := writable(parent); err != nil {
			d.fail("data folder", fmt.Sprintf("%s does not exist and cannot be made: %v", dir, err), "make it, or name another with --data-dir")
			return
		}
		d.ok("data folder", "%s will be made at the first start", dir)
		d.room(parent)
		return
	case err != nil || !info.IsDir():
		d.fail("data folder", dir+" is no folder that can be used", "name another with --data-dir")
		return
	}
	if err := writable(dir); err != nil {
		d.fail("data folder", fmt.Sprintf("%s cannot be written: %v", dir, err), "give it to the user who runs Bobbin, or name another with --data-dir")
		return
	}
	if info.Mode().Perm()&0o077 != 0 {
		d.warn("data folder", "others on this machine can look into "+dir, "chmod 700 "+dir)
	} else {
		d.ok("data folder", "%s", dir)
	}
	if s, running := folder.Running(dir); running {
		d.ok("server", "runs at %s, process %d", s.URL, s.PID)
	} else {
		d.ok("server", "none runs on this folder")
	}
	d.room(dir)
}

func statError(path string) error {
	_, err := os.Stat(path)
	return err
}

// writable tries to write into the folder.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".bobbin-doctor-")
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			return path.Err
		}
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func (d *doctor) room(dir string) {
	free, ok := folder.Free(dir)
	text := fmt.Sprintf("%.1f GiB free", float64(free)/(1<<30))
	switch {
	case !ok:
	case free < leastFree:
		d.fail("disk", text, "make room: what cannot be stored is refused")
	case free < littleFree:
		d.warn("disk", text, "make room, or move the data folder")
	default:
		d.ok("disk", "%s", text)
	}
}

// clock checks the time, which ids and leases rest on.
func (d *doctor) clock() {
	now := time.Now()
	if _, err := time.LoadLocation("Europe/Vienna"); err != nil {
		d.warn("clock", "there is no time zone database", "install tzdata: sessions with a timezone are in UTC without it")
		return
	}
	if now.Year() < 2025 {
		d.fail("clock", "it is "+now.Format(time.RFC3339)+" here", "set the clock: ids sort by it")
		return
	}
	d.ok("clock", "%s", now.Format(time.RFC3339))
}

// port checks whether the server could listen.
func (d *doctor) port(ctx context.Context) {
	if s, running := folder.Running(d.Config.DataDir); running && strings.HasSuffix(s.URL, "//"+d.Config.Addr) {
		d.ok("address", "%s is the running server's", d.Config.Addr)
		return
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", d.Config.Addr)
	if err != nil {
		reason := err
		var inner *net.OpError
		if errors.As(err, &inner) {
			reason = inner.Err
		}
		d.fail("address", fmt.Sprintf("cannot listen on %s: %v", d.Config.Addr, reason), "choose another with --addr, or stop who uses it")
		return
	}
	_ = l.Close() // only looked
	d.ok("address", "%s is free", d.Config.Addr)
}

// sentence returns an error as it is told to people.
func sentence(err error) string {
	var shown *core.Error
	if errors.As(err, &shown) {
		return shown.Message
	}
	return err.Error()
}
