package bywash

// What a request is called, and what of it goes on to the services that it calls.

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// RequestHeader has the name of a request: what gateway, application and stop daemon know it by.
const RequestHeader = "Bywash-Request"

// What is passed on as it came (W3C Trace Context).
const (
	traceParent = "Traceparent"
	traceState  = "Tracestate"
)

// DistrustRequest takes no names from requests: for servers that others can reach beside their gateway. Each gets a
// name of its own.
func DistrustRequest(m *middleware) { m.isNameless = true }

// nameOf is the name that a request brings along; empty if it is none.
func nameOf(header http.Header) string {
	if values := header[RequestHeader]; len(values) == 1 && isName(values[0], 128, "._:-") {
		return values[0]
	}
	return ""
}

// newName is the name of a request that brings none along, as mod_bywash_sentry makes it: 16 random hexadecimal
// digits, so that names of different processes differ. Empty if the system gives no randomness.
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

// Bring gives it the name and the trace that a request brought along in these fields. The middleware does so;
// elsewhere it is to be done before anybody else has the token.
func (t *Token) Bring(header http.Header) {
	t.name = nameOf(header)
	if values := header[traceParent]; len(values) == 1 {
		t.traceParent, t.traceState = values[0], header[traceState]
	}
}

// Name is what gateway and stop daemon know it by; empty if it has no name.
func (t *Token) Name() string { return t.name }

// In is a context that belongs to this request, for requests outside of net/http: Checkpoint, Outgoing and
// leases find it there. It is not cancelled when the request is over.
func (t *Token) In(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, t) }

// Outgoing is what a call to another service takes along: the name and the trace of the request that ctx belongs
// to, and the time that is left to it.
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

// Transport sends requests by way of another one (http.DefaultTransport if it is nil), each with what is Outgoing
// of its context. A field that is there already stays.
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
	// A RoundTripper changes no request that it is given.
	r = r.Clone(r.Context())
	if r.Header == nil {
		r.Header = http.Header{}
	}
	// A trace is one thing: the state of another parent would belong to nobody.
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
