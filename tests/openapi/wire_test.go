package openapi_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// hang is how long an answer may take before it counts as one that does not come.
const hang = 30 * time.Second

// wire sends requests byte by byte, as no HTTP client would. One goroutine owns it.
type wire struct {
	host string
	conn net.Conn
	in   *bufio.Reader
}

// reply is what came back; status 0 = the server closed the connection.
type reply struct {
	status int
	header http.Header
	body   []byte
	stream bool // body is as much of a stream as came at once
}

// send sends the request and reads its answer. An error says that none came in time.
func (w *wire) send(a asked, chunked bool) (reply, error) {
	fresh := w.conn == nil
	got, err := w.try(a, chunked)
	if err == nil && got.status == 0 && !fresh && !a.cut {
		// The connection had been closed before: that is not an answer to this one.
		got, err = w.try(a, chunked)
	}
	return got, err
}

func (w *wire) try(a asked, chunked bool) (reply, error) {
	if w.conn == nil {
		conn, err := net.DialTimeout("tcp", w.host, hang)
		if err != nil {
			return reply{}, err
		}
		w.conn, w.in = conn, bufio.NewReader(conn)

	}
	if err := w.conn.SetDeadline(time.Now().Add(hang)); err != nil {
		return reply{}, err
	}
	// The server may answer, and close, before it has read everything.
	var b bytes.Buffer
	target := a.path
	if a.query != "" {
		target += "?" + a.query
	}
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", a.method, target, w.host)
	for _, h := range a.headers {
		b.WriteString(h + "\r\n")
	}
	body := a.body
	switch {
	case chunked && len(body) > 0:
		b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
		half := len(body) / 2
		fmt.Fprintf(&b, "%x\r\n%s\r\n", half+1, body[:half+1])
		if !a.cut {
			if rest := body[half+1:]; len(rest) > 0 {
				fmt.Fprintf(&b, "%x\r\n%s\r\n", len(rest), rest)
			}
			b.WriteString("0\r\n\r\n")
		}
	default:
		if len(body) > 0 {
			fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
		}
		b.WriteString("\r\n")
		if a.cut {
			body = body[:len(body)/2]
		}
		b.Write(body)
	}
	if _, err := w.conn.Write(b.Bytes()); err == nil && a.cut {
		_ = w.conn.(*net.TCPConn).CloseWrite() // the answer is looked at all the same
	}
	got, keep, err := w.read(a.method)
	if !keep || err != nil {
		w.close()
	}
	return got, err
}

func (w *wire) close() {
	if w.conn != nil {
		_ = w.conn.Close() // nothing is lost with it
	}
	w.conn = nil
}

// read reads an answer, and says whether the connection can be used again.
func (w *wire) read(method string) (got reply, keep bool, err error) {
	for {
		answer, err := http.ReadResponse(w.in, &http.Request{Method: method, URL: &url.URL{}})
		if err != nil {
			return reply{}, false, late(err)
		}
		if answer.StatusCode == http.StatusContinue {
			continue
		}
		got = reply{status: answer.StatusCode, header: answer.Header}
		if media, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); media == "text/event-stream" {
			got.stream = true
			_ = w.conn.SetReadDeadline(time.Now().Add(120 * time.Millisecond)) // it may end in the middle
			data, _ := io.ReadAll(answer.Body)
			got.body = data[:strings.LastIndex(string(data), "\n\n")+1]
			return got, false, nil
		}
		got.body, err = io.ReadAll(answer.Body)
		if err != nil && late(err) != nil {
			return got, false, err
		}
		return got, err == nil && !answer.Close && method != http.MethodConnect, nil
	}
}

// late returns the error if it is that no answer came in time: a connection that was
// closed is an answer, too.
func late(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return err
	}
	return nil
}
