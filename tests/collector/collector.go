// Package collector is a receiver of OpenTelemetry traces for tests: it takes OTLP
// over HTTP as protobuf, and keeps what it got.
package collector

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	tracing "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a span that was received. Attributes are strings, int64, float64, bool or
// []any of them.
type Span struct {
	Name       string
	Kind       string // SERVER, CLIENT, INTERNAL
	TraceID    string
	ID         string
	Parent     string // empty = the root of its trace
	Failed     bool
	Message    string // of the status
	Attributes map[string]any
	Links      []string // ids of the spans that it is linked to
	Service    string   // service.name
	Schema     string   // URL of the conventions
}

// Server is a running receiver. Safe for concurrent use.
type Server struct {
	URL  string // base URL
	http *httptest.Server

	mu    sync.Mutex
	spans []Span   // guarded by mu
	raw   []string // the requests as text; guarded by mu
	paths []string // guarded by mu
}

// New starts a receiver; Close stops it.
func New() *Server {
	s := &Server{}
	s.http = httptest.NewServer(http.HandlerFunc(s.receive))
	s.URL = s.http.URL
	return s
}

// Close stops the receiver.
func (s *Server) Close() { s.http.Close() }

// receive takes one request.
func (s *Server) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request tracing.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &request)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paths = append(s.paths, r.Method+" "+r.URL.Path)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.raw = append(s.raw, request.String())
	for _, resource := range request.GetResourceSpans() {
		service, _ := attributes(resource.GetResource().GetAttributes())["service.name"].(string)
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				got := read(span)
				got.Service, got.Schema = service, scope.GetSchemaUrl()
				s.spans = append(s.spans, got)
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(nil) // an empty answer is a good one
}

// Spans returns all spans so far.
func (s *Server) Spans() []Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Span(nil), s.spans...)
}

// Text returns all that came so far, as text.
func (s *Server) Text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.raw, "\n")
}

// Paths returns the method and path of every request.
func (s *Server) Paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.paths...)
}

func read(span *trace.Span) Span {
	got := Span{
		Name: span.GetName(), Kind: strings.TrimPrefix(span.GetKind().String(), "SPAN_KIND_"),
		TraceID: hex.EncodeToString(span.GetTraceId()), ID: hex.EncodeToString(span.GetSpanId()), Parent: hex.EncodeToString(span.GetParentSpanId()),
		Failed: span.GetStatus().GetCode() == trace.Status_STATUS_CODE_ERROR, Message: span.GetStatus().GetMessage(),
		Attributes: attributes(span.GetAttributes()),
	}
	for _, l := range span.GetLinks() {
		got.Links = append(got.Links, hex.EncodeToString(l.GetSpanId()))
	}
	return got
}

func attributes(list []*common.KeyValue) map[string]any {
	out := map[string]any{}
	for _, kv := range list {
		out[kv.GetKey()] = value(kv.GetValue())
	}
	return out
}

func value(v *common.AnyValue) any {
	switch v := v.GetValue().(type) {
	case *common.AnyValue_StringValue:
		return v.StringValue
	case *common.AnyValue_IntValue:
		return v.IntValue
	case *common.AnyValue_DoubleValue:
		return v.DoubleValue
	case *common.AnyValue_BoolValue:
		return v.BoolValue
	case *common.AnyValue_ArrayValue:
		var out []any
		for _, one := range v.ArrayValue.GetValues() {
			out = append(out, value(one))
		}
		return out
	default:
		return nil
	}
}
