package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Command runs the programs of definitions. Safe for concurrent use.
type Command struct {
	Env      Environment
	MaxBytes int // of the output of one call
}

// NewCommand returns the tool of a definition of the kind command.
func NewCommand(d core.ToolDefinition, commands Command) (*Custom, error) {
	compile := compileClosed
	if len(d.Parameters) == 0 { // it declares nothing, and takes what it is given
		d.Parameters, compile = json.RawMessage(noArguments), CompileSchema
	}
	schema, err := compile(d.Parameters)
	if err != nil {
		return nil, fmt.Errorf("tool %s: parameters: %w", d.Name, err)
	}
	tool := &Custom{
		Definition: llm.ToolSpec{Name: d.Name, Description: d.Description, Parameters: fitParameters(d.Parameters)},
		Approval:   core.ApprovalAlways, Repeatable: d.Idempotent != nil && *d.Idempotent,
	}
	tool.Call = func(ctx context.Context, call Call) (string, error) { return commands.run(ctx, d, schema, call) }
	return tool, nil
}

// run runs the program with the arguments as JSON on its standard input. Its standard output is the
// result; an exit code other than 0 is an error with what it wrote.
func (c Command) run(ctx context.Context, d core.ToolDefinition, schema *jsonschema.Schema, call Call) (string, error) {
	arguments, err := ParseChecked(call.Arguments, schema)
	if err != nil {
		return "", err
	}
	input, err := core.EncodeJSON(arguments)
	if err != nil {
		return "", fmt.Errorf("the arguments are not JSON: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd, err := NewProcess(ctx, d, c.Env)
	if err != nil {
		return "", err
	}
	out := &boundedBuffer{limit: c.MaxBytes, full: cancel}
	failed := &boundedBuffer{limit: maxErrorText}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(string(input)+"\n"), out, failed
	if err := cmd.Start(); err != nil {
		return "", errors.New("the program could not be started")
	}
	const defaultMemory = 512 // MiB of data of a process
	limited := limitMemory(cmd, uint64(cmp.Or(max(d.MaxMemory, 0), defaultMemory))<<20)
	if errors.Is(limited, syscall.ESRCH) {
		limited = nil // it has ended already
	}
	if limited != nil {
		cancel()
	}
	err = cmd.Wait()
	switch {
	case limited != nil:
		return "", errors.New("the memory of the program could not be limited")
	case out.overflowed:
		return "", fmt.Errorf("the program wrote more than %s and was stopped; ask for less", core.ByteSize(int64(c.MaxBytes)))
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.Is(err, exec.ErrWaitDelay): // the result is complete; what it left running is not waited for
		_ = KillGroup(cmd)
	case err != nil:
		text := ""
		for _, b := range []*boundedBuffer{failed, out} {
			if written := strings.TrimSpace(b.String()); written != "" {
				text += "\n" + core.Clip(written, maxErrorText)
			}
		}
		return "", fmt.Errorf("the program failed: %w%s", err, HideSecrets(text, c.Env.Secrets(d)))
	}
	return HideSecrets(out.String(), c.Env.Secrets(d)), nil
}

// boundedBuffer keeps the beginning of what is written to it. One goroutine writes.
type boundedBuffer struct {
	strings.Builder

	limit      int    // bytes
	full       func() // called when more is written; nil = nothing is
	overflowed bool
}

// Write keeps what fits and never fails.
func (b *boundedBuffer) Write(p []byte) (int, error) {
	room := b.limit - b.Len()
	b.Builder.Write(p[:min(room, len(p))])
	if len(p) > room {
		if b.overflowed = true; b.full != nil {
			b.full()
		}
	}
	return len(p), nil
}

// exitTime is how long the output of a program is read after it has ended: a child may hold the pipe.
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
