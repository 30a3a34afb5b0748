//go:build linux || darwin || freebsd

package core

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// NoFollow makes os.OpenFile fail for a symbolic link.
const NoFollow = syscall.O_NOFOLLOW

// CheckOwner returns ErrForbidden for a folder of another user than this process's and
// root: whoever owns it can have what is written there end up elsewhere, by symbolic
// links. One that does not exist is nobody's.
func CheckOwner(folder string) error {
	info, err := os.Stat(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) == os.Geteuid() || stat.Uid == 0 { // root can do everything anyway
		return nil
	}
	owner := userName(int(stat.Uid))
	return Errorf(ErrForbidden, "the folder %s belongs to the user %s, and this is %s: run the command as its owner, with sudo -u %s, or for a systemd unit with DynamicUser: "+
		"systemd-run --pty --collect -p User=bobbin -p DynamicUser=yes -p StateDirectory=bobbin <command>", folder, owner, userName(os.Geteuid()), owner)
}

// userName returns the name of a user, or the number of one who has none.
func userName(id int) string {
	if u, err := user.LookupId(strconv.Itoa(id)); err == nil {
		return u.Username
	}
	return strconv.Itoa(id)
}
