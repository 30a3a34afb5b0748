package tools

import (
	"os/exec"

	"golang.org/x/sys/unix"
)

// limitMemory bounds the data of a program that was just started, and of what it starts, in bytes.
func limitMemory(cmd *exec.Cmd, bytes uint64) error {
	return unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: bytes, Max: bytes}, nil)
}
