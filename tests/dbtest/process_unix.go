//go:build unix

package dbtest

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// prepareCommand makes the command run as the server's user, in its own session: an
// interrupt typed at the terminal is for the tests, not for the server.
func (c cluster) prepareCommand(cmd *exec.Cmd) {
	detachCommand(cmd)
	if c.asUser == nil {
		return
	}
	uid, errUID := strconv.ParseUint(c.asUser.Uid, 10, 32)
	gid, errGID := strconv.ParseUint(c.asUser.Gid, 10, 32)
	if errUID == nil && errGID == nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
}

func detachCommand(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// stopServer ends the server of the folder, if the process still is that server.
func stopServer(pid int, dir string) {
	cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err == nil && strings.Contains(string(cmdline), dir) {
		_ = syscall.Kill(pid, syscall.SIGQUIT) // it may have ended by itself
	}
}

// signalServer asks the server to stop.
func signalServer(pid int, mode StopMode) error {
	signal := syscall.SIGINT
	if mode == StopImmediate {
		signal = syscall.SIGQUIT
	}
	return syscall.Kill(pid, signal)
}
