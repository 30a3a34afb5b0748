//go:build !unix

package dbtest

import (
	"errors"
	"os/exec"
)

// Elsewhere than on Unix a cluster is not started as another user, nor detached;
// BOBBIN_TEST_POSTGRES_URL is the way to go there.
func (c cluster) prepare(*exec.Cmd) {}

func detach(*exec.Cmd) {}

func stopServer(int, string) {}

func signalServer(int, StopMode) error { return errors.ErrUnsupported }
