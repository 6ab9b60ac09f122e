package bywash

// The name of a request, and the header fields that it passes on to the services that it calls.

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RequestHeader is the header field with the name of a request, which gateway, application and stop
// daemon share.
const RequestHeader = "Bywash-Request"

// The header fields that are passed on unchanged (W3C Trace Context).
const (
	traceParent = "Traceparent"
	traceState  = "Tracestate"
)

// DistrustRequest makes the middleware ignore the names in the headers of requests, and give each
// request a new name. Use it for servers that clients can reach without passing the gateway.
func DistrustRequest(m *middleware) { m.isNameless = true }

// nameOf returns the name of a request from its header; empty if it has none or the name is not
// valid.
func nameOf(header http.Header) string {
	if values := header[RequestHeader]; len(values) == 1 && isName(values[0], 128, "._:-") {
		return values[0]
	}
	return ""
}

// newName returns a name for a request without one, in the format of the names of
// mod_bywash_sentry: 16 random hexadecimal digits, so that names of different processes differ. It
// is empty if the system gives no randomness.
func newName() string {
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return ""
	}
	return hex.EncodeToString(random[:])
}

func isName(text string, longest int, marks string) bool {
	if len(text) < 1 || len(text) > longest {
		return false
	}
	for _, letter := range []byte(text) {
		switch {
		case letter >= 'a' && letter <= 'z', letter >= 'A' && letter <= 'Z', letter >= '0' && letter <= '9':
		case strings.IndexByte(marks, letter) >= 0:
		default:
			return false
		}
	}
	return true
}

// Bring sets the name and the trace of the request from the fields of its header. The middleware
// calls it. Elsewhere, call it before the token is shared.
func (t *Token) Bring(header http.Header) {
	t.name = nameOf(header)
	// A proxy may have joined several values with commas.
	if values := header[traceParent]; len(values) == 1 && !strings.Contains(values[0], ",") {
		t.traceParent, t.traceState = values[0], header[traceState]
	}
}

// Name returns the name by which gateway and stop daemon know the request; empty if it has none.
func (t *Token) Name() string { return t.name }

// In returns a context that belongs to this request, for requests outside of net/http. Checkpoint,
// Outgoing and leases find the request in it. It is not cancelled when the request is over.
func (t *Token) In(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, t) }

// Outgoing returns the header fields for a call to another service: the name and the trace of the
// request that ctx belongs to, and the time that is left to it.
func Outgoing(ctx context.Context) http.Header {
	header := http.Header{}
	token := From(ctx)
	if token == nil {
		return header
	}
	if token.name != "" {
		header.Set(RequestHeader, token.name)
	}
	if token.traceParent != "" {
		header.Set(traceParent, token.traceParent)
		header[traceState] = append(header[traceState], token.traceState...)
	}
	if left := token.Left(); left < never {
		milliseconds := min(int64(left/time.Millisecond), 999_999_999)
		header.Set(Header, strconv.FormatInt(milliseconds, 10))
	}
	return header
}

type transport struct{ http.RoundTripper }

// Transport adds the Outgoing fields of a request's context and sends the request with another
// RoundTripper (http.DefaultTransport if it is nil). A field that is set already stays.
func Transport(by http.RoundTripper) http.RoundTripper {
	if by == nil {
		by = http.DefaultTransport
	}
	return transport{by}
}

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	outgoing := Outgoing(r.Context())
	if len(outgoing) == 0 {
		return t.RoundTripper.RoundTrip(r)
	}
	// A RoundTripper must not change the request that it is given.
	r = r.Clone(r.Context())
	if r.Header == nil {
		r.Header = http.Header{}
	}
	// The state belongs to its parent, so it is not added to another traceparent.
	if _, isTraced := r.Header[traceParent]; isTraced {
		delete(outgoing, traceState)
	}
	for field, values := range outgoing {
		if _, isThere := r.Header[field]; !isThere && len(values) > 0 {
			r.Header[field] = values
		}
	}
	return t.RoundTripper.RoundTrip(r)
}
