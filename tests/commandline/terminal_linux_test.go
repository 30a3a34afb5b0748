package commandline_test

import (
	"bobbin/tests/compare"
	"bobbin/tests/must"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unicode"

	"golang.org/x/sys/unix"
)

// A terminal that has not told its size is one of 80 columns: what steers it does not
// get through there either.
func TestTerminalsAreNotSteered(t *testing.T) {
	t.Parallel()
	for _, size := range []unix.Winsize{{Row: 24, Col: 80}, {}} {
		t.Run(fmt.Sprintf("%dx%d", size.Col, size.Row), func(t *testing.T) {
			t.Parallel()
			out := talk(t, newHostileShell(t), size, "say hi\r")
			must.True(t, strings.Contains(out, "gnp.exe") && strings.Contains(out, "/help lists the commands"), "got %q, want a conversation", out)
			for _, part := range []string{"\x1b]52", "\x1b[2J"} {
				compare.True(t, !strings.Contains(out, part), "%q gets through: %q", part, out)
			}
			if i := strings.IndexFunc(out, func(r rune) bool { return r >= 0x80 && r < 0xa0 || unicode.Is(unicode.Bidi_Control, r) }); i >= 0 {
				t.Errorf("%q gets through", []rune(out[i:])[0])
			}
		})
	}
}

// What is typed during an answer is not echoed into it, a Ctrl-D ends the chat behind it, and the
// terminal is as before afterwards.
func TestTypingIsNotEchoed(t *testing.T) {
	t.Parallel()
	master, slave := openTerminal(t, unix.Winsize{Row: 24, Col: 80})
	defer func() { _ = slave.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	asked, typed := make(chan struct{}), make(chan struct{})
	ask := sync.OnceFunc(func() { close(asked) })
	cmd := newHostileShell(t, func() { ask(); <-typed }).command(ctx, t, "chat")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	mode := func() uint32 {
		m := must.Get(unix.IoctlGetTermios(int(master.Fd()), unix.TCGETS))(t)
		return m.Lflag
	}
	before := mode()
	must.Do(t, cmd.Start())
	expect(t, master, "quits")
	must.Get(io.WriteString(master, "say hi\r"))(t)
	select {
	case <-asked:
	case <-ctx.Done():
		t.Error("the model is not asked")
	}
	compare.True(t, mode()&unix.ECHO == 0, "the terminal echoes what is typed during an answer")
	_, err := io.WriteString(master, "\x04")
	close(typed)
	must.Do(t, err)
	expect(t, master, "to continue")
	go func() { _, _ = io.Copy(io.Discard, master) }() // a terminal's mode changes when its output was read
	for ; mode() != before && ctx.Err() == nil; runtime.Gosched() {
	}
	if ctx.Err() != nil {
		t.Errorf("afterwards the terminal's mode is %x, want %x", mode(), before)
	}
	must.Do(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
}

// talk types a line into a chat on a terminal of the size, and returns what it showed
// until the answer was whole.
func talk(t *testing.T, s shell, size unix.Winsize, line string) string {
	t.Helper()
	master, slave := openTerminal(t, size)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := s.command(ctx, t, "chat")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must.Do(t, cmd.Start())
	must.Do(t, slave.Close())
	defer context.AfterFunc(ctx, func() { _ = master.Close() })()
	shown := expect(t, master, "quits")
	must.Get(io.WriteString(master, line))(t)
	shown += expect(t, master, "done\r\n")
	must.Do(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	return shown
}

// expect reads from the terminal until the text was shown.
func expect(t *testing.T, r io.Reader, text string) string {
	t.Helper()
	var shown strings.Builder
	buffer := make([]byte, 4096)
	for !strings.Contains(shown.String(), text) {
		n, err := r.Read(buffer)
		shown.Write(buffer[:n])
		must.True(t, err == nil, "the terminal shows %q and no %q: %v", shown.String(), text, err)
	}
	return shown.String()
}

// openTerminal opens a pseudo-terminal: the side of who sits at it, and that of the
// program.
func openTerminal(t *testing.T, size unix.Winsize) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this machine has no pseudo-terminals: %v", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	fd := int(master.Fd())
	number := must.Get(unix.IoctlGetInt(fd, unix.TIOCGPTN))(t)
	must.Do(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	must.Do(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &size))
	slave = must.Get(os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0))(t)
	return master, slave
}
