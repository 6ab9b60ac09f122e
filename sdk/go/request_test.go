package bywash

// Tests of the header fields that a request passes on. Names and fields themselves:
// conformance_test.go.

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestOutsideOfARequestNothingIsPassedOn(t *testing.T) {
	if outgoing := Outgoing(context.Background()); len(outgoing) != 0 {
		t.Error(outgoing)
	}
	c, _ := search(t)
	token := begin(t, c, never)
	token.Settle()
	// It has neither a name nor a time.
	if outgoing := Outgoing(token.In(context.Background())); len(outgoing) != 0 {
		t.Error(outgoing)
	}
}

const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestATransportPassesThemOnAndChangesNothingElse(t *testing.T) {
	heads := make(chan http.Header, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { heads <- r.Header }))
	defer server.Close()
	c, _ := search(t)
	token := begin(t, c, never)
	token.Bring(http.Header{RequestHeader: {"r1"}, traceParent: {trace}, traceState: {"a=1"}})
	request, err := http.NewRequestWithContext(token.In(context.Background()), "GET", server.URL, nil)
	must(t, err)
	own := strings.Replace(trace, "b7ad", "0000", 1)
	request.Header.Set(traceParent, own)
	response, err := (&http.Client{Transport: Transport(nil)}).Do(request)
	must(t, err)
	response.Body.Close()
	head := <-heads
	if head.Get(RequestHeader) != "r1" || head.Get(Header) != "9000" {
		t.Error(head)
	}
	// The caller has set a trace already: its traceparent stays, and no state is added.
	if head.Get(traceParent) != own || head.Get(traceState) != "" {
		t.Error(head)
	}
	if len(request.Header) != 1 {
		t.Error("the request of the caller has changed", request.Header)
	}
}
