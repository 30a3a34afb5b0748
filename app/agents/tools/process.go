package tools

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"bobbin/app/core"
)

// exitTime is how long the output of a program is read after it has ended: a child of it may hold
// the pipe.
const exitTime = time.Second

// NewProcess prepares the program of a definition: in a process group of its own, which is killed
// when ctx ends, without a shell, with the environment of the definition alone.
func NewProcess(ctx context.Context, d core.ToolDefinition, env Environment) (*exec.Cmd, error) {
	variables, err := env.List(d.Env)
	if err != nil {
		return nil, err
	}
	folder, err := filepath.Abs(filepath.Dir(d.File))
	if err != nil {
		return nil, err
	}
	program := d.Command
	if strings.ContainsRune(program, filepath.Separator) && !filepath.IsAbs(program) {
		program = filepath.Join(folder, program)
	}
	if program, err = exec.LookPath(program); err != nil {
		return nil, fmt.Errorf("the program %s is not installed, or cannot be executed", d.Command)
	}
	cmd := exec.CommandContext(ctx, program, d.Args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = variables, folder, exitTime
	if d.Dir != "" {
		cmd.Dir = d.Dir
		if !filepath.IsAbs(d.Dir) {
			cmd.Dir = filepath.Join(folder, d.Dir)
		}
	}
	ownGroup(cmd)
	return cmd, nil
}
