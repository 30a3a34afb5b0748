//go:build !unix

package tools

import "os/exec"

// ownGroup does nothing: the program alone is killed.
func ownGroup(*exec.Cmd) {}

// KillGroup kills the program.
func KillGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }
