package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/datadir"
	"bobbin/app/wire"
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
	Unseen  []string // variables with secrets that the server has, and this program has not
	Err     error    // of loading the settings; not nil = nothing else can be checked
	Call    bool     // also call the model, for a few tokens
	Address string   // of this Bobbin, which Slack reaches; empty = not checked
	Logger  *slog.Logger
}

// Times that single checks may take.
const (
	inspectTime = 20 * time.Second
	callTime    = 60 * time.Second
	reachTime   = 2 * time.Second
)

type doctor struct {
	DoctorOptions
	found  []Finding
	stored int // valid API keys of the database
	slack  []core.SlackInstallation
}

// Doctor looks at everything that Bobbin needs, and says what to do about what is
// not right. It changes nothing and makes nothing.
func Doctor(ctx context.Context, o DoctorOptions) Diagnosis {
	d := &doctor{DoctorOptions: o}
	if d.checkSettings(); o.Err == nil {
		d.checkFolder()
		d.checkDatabase(ctx)
		plain := 0
		for _, k := range d.Config.Auth.Keys {
			if !k.Hashed() {
				plain++
			}
		}
		set := len(d.Config.Auth.Keys)
		switch {
		case plain > 0:
			d.addWarning("api keys", fmt.Sprintf("%d of %d keys are set as plain text", plain, set), "bobbin keys new <name> makes keys whose setting is a hash")
		case set+d.stored == 0 && len(d.Unseen) > 0: // a key may be among them
		case set+d.stored == 0:
			d.addOK("api keys", "none: only this machine has access")
		default:
			d.addOK("api keys", "%d in the database, %d in the settings, all by their hashes", d.stored, set)
		}
		if n := d.Config.NATS; n.InTheClear() {
			d.addWarning("nats", fmt.Sprintf("what replicas tell each other by %s%s is not encrypted", n.URL, n.ClusterAddr), wire.EncryptNATS)
		}
		d.checkTokenKeys(ctx)
		d.checkSlack(ctx)
		d.checkModels(ctx)
		if now := time.Now().Format(time.RFC3339); now < "2025" { // ids and leases rest on it
			d.addFailure("clock", "the time here is "+now, "set the clock: ids sort by it")
		} else {
			d.addOK("clock", "%s", now)
		}
		if s, running := datadir.Running(d.Config.DataDir); running {
			d.addOK("address", "%s is the running server's", strings.TrimPrefix(s.URL, "http://"))
		} else if l, err := new(net.ListenConfig).Listen(ctx, "tcp", d.Config.Addr); err != nil {
			d.addFailure("address", err.Error(), "choose another with --addr, or stop the process that uses it")
		} else {
			_ = l.Close() // it was only a check
			d.addOK("address", "%s is free", d.Config.Addr)
		}
	}
	out := Diagnosis{Status: VerdictOK, Findings: d.found}
	for _, f := range d.found {
		if f.Status == VerdictFail || f.Status == VerdictWarn && out.Status == VerdictOK {
			out.Status = f.Status
		}
	}
	return out
}

func (d *doctor) addOK(check, format string, args ...any) {
	d.found = append(d.found, Finding{Check: check, Status: VerdictOK, Detail: fmt.Sprintf(format, args...)})
}

func (d *doctor) addWarning(check, detail, do string) {
	d.found = append(d.found, Finding{check, VerdictWarn, detail, do})
}

func (d *doctor) addFailure(check, detail, do string) {
	d.found = append(d.found, Finding{check, VerdictFail, detail, do})
}

// checkSettings checks the configuration and who can read it.
func (d *doctor) checkSettings() {
	if len(d.Unseen) > 0 {
		d.addWarning("configuration", fmt.Sprintf("the server has %s in its environment, and this command has not: what they set is not checked", strings.Join(d.Unseen, ", ")), "run it with the server's environment")
	}
	if d.Err != nil && len(d.Unseen) > 0 {
		return
	}
	if d.Err != nil {
		for _, line := range strings.Split(d.Err.Error(), "\n") {
			d.addFailure("configuration", line, "")
		}
		d.found[len(d.found)-1].Do = "correct these settings; the other checks need valid settings"
		return
	}
	set := 0
	for _, o := range d.Origins {
		if d.Origins.Set(o.Key) {
			set++
		}
	}
	file := d.Origins.File()
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o077 != 0 { // others can read it
		for _, key := range []string{"auth.keys", "database.url"} {
			if o := d.Origins.Of(key); strings.HasPrefix(o.From, file+":") && strings.Contains(o.Value, "***") {
				d.addWarning("configuration", file+" has secrets, and other users of this machine can read it", "chmod 600 "+file)
				break
			}
		}
	}
	d.addOK("configuration", "%s, settings that differ from the defaults: %d", cmp.Or(file, "no file"), set)
}

// leastFree is how much room there should be, in bytes.
const leastFree, littleFree = 64 << 20, 1 << 30

func (d *doctor) checkFolder() {
	dir := d.Config.DataDir
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		parent := filepath.Dir(filepath.Clean(dir))
		for parent != "." && parent != "/" {
			if _, err := os.Stat(parent); !errors.Is(err, fs.ErrNotExist) {
				break
			}
			parent = filepath.Dir(parent)
		}
		if err := tryWriting(parent); err != nil {
			d.addFailure("data folder", fmt.Sprintf("%s does not exist and cannot be created: %v", dir, err), "create it, or name another with --data-dir")
			return
		}
		d.addOK("data folder", "%s will be created at the first start", dir)
		d.checkRoom("disk", parent)
		return
	case err != nil || !info.IsDir():
		d.addFailure("data folder", dir+" is not a usable folder", "name another with --data-dir")
		return
	}
	if err := tryWriting(dir); err != nil {
		d.addFailure("data folder", fmt.Sprintf("%s cannot be written: %v", dir, err), "give it to the user who runs Bobbin, or name another with --data-dir")
		return
	}
	if info.Mode().Perm()&0o077 != 0 {
		d.addWarning("data folder", "other users of this machine can read "+dir, "chmod 700 "+dir)
	} else {
		d.addOK("data folder", "%s", dir)
	}
	if s, running := datadir.Running(dir); running {
		d.addOK("server", "runs at %s, process %d", s.URL, s.PID)
	} else {
		d.addOK("server", "none runs on this folder")
	}
	d.checkRoom("disk", dir)
}

func tryWriting(dir string) error {
	f, err := os.CreateTemp(dir, ".bobbin-doctor-")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func (d *doctor) checkRoom(check, dir string) {
	free, _, ok := datadir.Free(dir)
	text := fmt.Sprintf("%.1f GiB free", float64(free)/(1<<30))
	switch {
	case !ok:
	case free < leastFree:
		d.addFailure(check, text, "make disk space: requests that need storage are refused")
	case free < littleFree:
		d.addWarning(check, text, "make disk space, or move the data folder")
	default:
		d.addOK(check, "%s", text)
	}
}
