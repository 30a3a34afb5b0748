//go:build !unix

package dbtest

import (
	"errors"
	"os/exec"
)

// On other systems than Unix a cluster cannot be started as another user, nor detached; set
// BOBBIN_TEST_POSTGRES_URL there.
func (c cluster) prepareCommand(*exec.Cmd) {}

func detachCommand(*exec.Cmd) {}

func stopServer(int, string) {}

func signalServer(int, StopMode) error { return errors.ErrUnsupported }
