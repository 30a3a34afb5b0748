package fakeslack

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// pingInterval is between two pings: clients give up after 30 s.
const pingInterval = 10 * time.Second

// socket is a connection in Socket Mode.
type socket struct {
	conn    *websocket.Conn
	writing sync.Mutex
	acks    map[string]chan json.RawMessage // by envelope; guarded by the server's mu
	closing bool                            // it was told to disconnect; guarded by the server's mu
	silent  atomic.Bool                     // it is open, and nothing passes
	done    chan struct{}                   // the connection has ended
}

func connectionsOpen(c *call) (reply, error) {
	ticket := rand.Text()
	c.s.tickets[ticket] = true
	return reply{"url": strings.Replace(c.s.URL, "http", "ws", 1) + "/link?ticket=" + ticket}, nil
}

// serveSocket serves a connection until it ends. It takes mu.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	ticket := r.URL.Query().Get("ticket")
	s.mu.Lock()
	known := s.tickets[ticket]
	delete(s.tickets, ticket)
	s.mu.Unlock()
	if !known {
		http.Error(w, "unknown ticket", http.StatusForbidden)
		return
	}
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }} // clients name Slack's; the ticket is the key
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // the upgrader has answered
	}
	defer conn.Close()
	link := &socket{conn: conn, acks: map[string]chan json.RawMessage{}, done: make(chan struct{})}
	conn.SetPingHandler(func(data string) error {
		if link.silent.Load() {
			return nil
		}
		return conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(5*time.Second))
	})
	var pinging sync.WaitGroup
	defer pinging.Wait()
	defer close(link.done)
	if !s.openSocket(link) {
		return
	}
	pinging.Go(link.sendPings)
	for {
		var ack struct {
			EnvelopeID string          `json:"envelope_id"`
			Payload    json.RawMessage `json:"payload"`
		}
		if err := conn.ReadJSON(&ack); err != nil {
			s.removeSocket(link)
			return
		}
		if link.silent.Load() {
			continue
		}
		s.mu.Lock()
		if waiting := link.acks[ack.EnvelopeID]; waiting != nil {
			waiting <- ack.Payload
			delete(link.acks, ack.EnvelopeID)
		}
		s.mu.Unlock()
	}
}

// openSocket says hello. It takes mu.
func (s *Server) openSocket(link *socket) bool {
	s.mu.Lock()
	n := len(s.sockets) + 1
	s.mu.Unlock()
	if err := link.writeJSON(reply{"type": "hello", "num_connections": n, "connection_info": reply{"app_id": appID},
		"debug_info": reply{"host": "fakeslack", "approximate_connection_time": 18060}}); err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false // Close no longer sees this one
	}
	s.sockets, s.socketMode = append(s.sockets, link), true
	s.notifyWaiters()
	return true
}

// removeSocket forgets a connection that has ended. It takes mu.
func (s *Server) removeSocket(link *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sockets = slices.DeleteFunc(s.sockets, func(other *socket) bool { return other == link })
	s.notifyWaiters()
}

func (k *socket) writeJSON(value any) error {
	if k.silent.Load() {
		return nil // the other side gets nothing
	}
	k.writing.Lock()
	defer k.writing.Unlock()
	_ = k.conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
	return k.conn.WriteJSON(value)
}

func (k *socket) sendPings() {
	ticker := time.NewTicker(pingInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if k.silent.Load() {
				continue
			}
			_ = k.conn.WriteControl(websocket.PingMessage, []byte("ping"), time.Now().Add(5*time.Second))
		case <-k.done:
			return
		}
	}
}

// sendToSocket sends an envelope over a connection and waits for its ack. It
// takes mu.
func (s *Server) sendToSocket(ctx context.Context, d *delivery, retry int, reason string) answer {
	s.mu.Lock()
	link := findFirst(s.sockets, func(k *socket) bool { return !k.closing })
	if link == nil {
		s.mu.Unlock()
		return answer{Attempt: Attempt{Reason: reasonConnection}}
	}
	id, acked := s.newID("envelope-"), make(chan json.RawMessage, 1)
	link.acks[id] = acked
	s.mu.Unlock()
	envelope := reply{"envelope_id": id, "type": d.envelope, "payload": d.payload, "accepts_response_payload": d.record == nil}
	if d.record != nil {
		envelope["retry_attempt"], envelope["retry_reason"] = retry, reason
	}
	if err := link.writeJSON(envelope); err != nil {
		return answer{Attempt: Attempt{Reason: reasonConnection}}
	}
	select {
	case payload := <-acked:
		return answer{Attempt: Attempt{Status: http.StatusOK}, body: payload}
	case <-ctx.Done():
		return answer{Attempt: Attempt{Reason: reasonTimeout}}
	case <-link.done:
		return answer{Attempt: Attempt{Reason: reasonConnection}}
	}
}

// Sockets returns how many connections in Socket Mode are open, and not silent.
func (s *Server) Sockets() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.sockets {
		if !k.silent.Load() {
			n++
		}
	}
	return n
}

// SilenceSockets lets nothing more pass over the connections that are open, as a broken network
// does: neither side hears that they are dead.
func (s *Server) SilenceSockets() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.sockets {
		k.silent.Store(true)
	}
}

// Disconnect tells the app to reconnect its sockets, for a reason such as "warning" or
// "refresh_requested". Nothing more is sent over the old ones. It takes mu.
func (s *Server) Disconnect(reason string) {
	s.mu.Lock()
	old := slices.Clone(s.sockets)
	for _, k := range old {
		k.closing = true
	}
	s.mu.Unlock()
	for _, k := range old {
		_ = k.writeJSON(reply{"type": "disconnect", "reason": reason, "debug_info": reply{"host": "fakeslack"}})
	}
}
