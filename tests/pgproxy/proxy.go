// Package pgproxy is a TCP proxy before PostgreSQL that loses the answer of a COMMIT, as a
// network that breaks in the wrong moment does: the transaction is committed, and the
// client never learns it.
package pgproxy

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"bobbin/tests/must"
	"bobbin/tests/process"
)

// Proxy passes on what goes to and from one PostgreSQL. Safe for concurrent use.
type Proxy struct {
	// URL is that of the database behind the proxy.
	URL string

	readOnly bool
	trips    atomic.Int64

	mu         sync.Mutex
	statements map[string]string // of prepared statements, by their names, which stand for their text; guarded by mu
	trap       *trap             // nil = nothing is lost; guarded by mu
}

// trap waits for the transaction whose COMMIT is to be lost.
type trap struct {
	word      string
	committed chan struct{}
}

// New starts a proxy before the database at raw, which must be reached without TLS. It
// ends with the test.
func New(t testing.TB, raw string) *Proxy {
	t.Helper()
	return start(t, raw, false)
}

// NewReadOnly is New for a proxy behind which the database takes no writes, like a standby.
func NewReadOnly(t testing.TB, raw string) *Proxy {
	t.Helper()
	return start(t, raw, true)
}

func start(t testing.TB, raw string, readOnly bool) *Proxy {
	t.Helper()
	u := must.Get(url.Parse(raw))(t)
	link := process.NewLink(t, u.Host)
	u.Host = link.Addr()
	p := &Proxy{URL: u.String(), readOnly: readOnly, statements: map[string]string{}}
	link.Carry = p.carry
	return p
}

// Lose lets the COMMIT of the next transaction with the word in one of its statements, or a statement with
// the word without a transaction, through and breaks the connection in the place of its answer. The channel
// is closed when the database has committed.
func (p *Proxy) Lose(word string) (committed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trap = &trap{word: word, committed: make(chan struct{})}
	return p.trap.committed
}

// RoundTrips returns how often clients have waited for the database so far, without the pings of idle
// connections.
func (p *Proxy) RoundTrips() int64 { return p.trips.Load() }

// carry passes on one connection.
func (p *Proxy) carry(in, out net.Conn) {
	c := &connection{proxy: p, in: in, out: out}
	var answers sync.WaitGroup
	answers.Go(func() {
		c.passAnswers()
		_ = in.Close()
	})
	c.passRequests()
	_ = out.Close()
	answers.Wait()
}

// connection is one client's.
type connection struct {
	proxy   *Proxy
	in, out net.Conn

	inTx    bool // used by passRequests
	trapped bool // a statement of the transaction had the word; likewise

	mu   sync.Mutex
	trap *trap // the answer that comes now is lost; guarded by mu
}

// passRequests passes on what the client sends, message by message.
func (c *connection) passRequests() {
	if err := c.pass(0); err != nil { // the startup message has no type
		return
	}
	for c.pass(1) == nil {
	}
}

// pass passes on one message, whose type has that many bytes.
func (c *connection) pass(kind int) error {
	head := make([]byte, kind+4)
	if _, err := io.ReadFull(c.in, head); err != nil {
		return err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[kind:])-4)
	if _, err := io.ReadFull(c.in, body); err != nil {
		return err
	}
	if kind > 0 {
		c.look(head[0], body)
	} else if c.proxy.readOnly {
		body = append(body[:len(body)-1], readOnlyOption...)
		binary.BigEndian.PutUint32(head, uint32(len(head)+len(body))) //nolint:gosec // a startup message is short
	}
	_, err := c.out.Write(append(head, body...))
	return err
}

// readOnlyOption ends a startup message of a session that takes no writes.
const readOnlyOption = "default_transaction_read_only\x00on\x00\x00"

// look notes what the client does with its transaction.
func (c *connection) look(kind byte, body []byte) {
	parts := bytes.SplitN(body, []byte{0}, 3)
	text := ""
	if kind == 'S' || kind == 'Q' && !bytes.HasPrefix(body, []byte("-- ping")) { // Sync, Query
		c.proxy.trips.Add(1)
	}
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	switch {
	case kind == 'Q': // Query: the statement
		text = string(parts[0])
	case kind == 'P' && len(parts) > 1: // Parse: a name, the statement
		text = string(parts[1])
		c.proxy.statements[string(parts[0])] = text
	case kind == 'B' && len(parts) > 1: // Bind: a portal, the name of the statement
		text = c.proxy.statements[string(parts[1])]
	}
	t := c.proxy.trap
	switch {
	case kind == 'P' && strings.EqualFold(text, "commit"): // it is executed later
	case t != nil && (strings.EqualFold(text, "commit") && c.trapped || kind == 'B' && !c.inTx && strings.Contains(text, t.word)):
		c.mu.Lock()
		c.trap, c.proxy.trap = t, nil
		c.mu.Unlock()
	case strings.HasPrefix(strings.ToLower(text), "begin"), strings.EqualFold(text, "commit"), strings.EqualFold(text, "rollback"):
		c.trapped, c.inTx = false, strings.HasPrefix(strings.ToLower(text), "begin")
	case t != nil && strings.Contains(text, t.word):
		c.trapped = true
	}
}

// passAnswers passes on what the database answers, until that is the answer to be lost.
func (c *connection) passAnswers() {
	buf := make([]byte, 32<<10)
	for {
		n, err := c.out.Read(buf)
		if err != nil {
			return
		}
		c.mu.Lock()
		t := c.trap
		c.mu.Unlock()
		if t == nil {
			if _, err := c.in.Write(buf[:n]); err != nil {
				return
			}
			continue
		}
		close(t.committed)
		return
	}
}
