package bywash

// Tests of a request's name, and of the header fields that it passes on.

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestANameIsOneValueOfAFewLetters(t *testing.T) {
	for name, values := range map[string][]string{
		"5f1c":                   {"5f1c"},
		"a.b_c:D-9":              {"a.b_c:D-9"},
		strings.Repeat("a", 128): {strings.Repeat("a", 128)},
	} {
		if nameOf(http.Header{RequestHeader: values}) != name {
			t.Error(name)
		}
	}
	for _, values := range [][]string{
		nil, {""}, {"a", "a"}, {"a b"}, {"a\n"}, {"ä"}, {"a/b"}, {strings.Repeat("a", 129)},
	} {
		if name := nameOf(http.Header{RequestHeader: values}); name != "" {
			t.Error(values, name)
		}
	}
}

func TestTheMiddlewareKnowsTheNameOrMakesOne(t *testing.T) {
	made := map[string]bool{}
	for i, options := range [][]Option{nil, {DistrustRequest}, nil, nil} {
		names := make(chan string, 1)
		c, err := NewController(within(time.Second, time.Hour))
		must(t, err)
		wrap, err := c.Middleware("search", options...)
		must(t, err)
		server := httptest.NewServer(wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			names <- From(r.Context()).Name()
		})))
		brought := []string{"r1", "r1", "no name", ""}[i]
		at(t, server).get("/", RequestHeader, brought)
		name := <-names
		if i == 0 {
			if name != "r1" {
				t.Errorf("%q", name)
			}
			continue
		}
		// The names are like those of mod_bywash_sentry: the daemon accepts them, and each is
		// different.
		if _, err := strconv.ParseUint(name, 16, 64); err != nil || len(name) != 16 || made[name] {
			t.Errorf("%q", name)
		}
		made[name] = true
	}
}

const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestNameTraceAndTimeArePassedOn(t *testing.T) {
	c, clock := search(t)
	token := begin(t, c, 2*second)
	token.Bring(http.Header{RequestHeader: {"r1"}, traceParent: {trace}, traceState: {"a=1", "b=2"}})
	ctx := token.In(context.Background())
	clock.goes(500*time.Millisecond + 1)
	outgoing := Outgoing(ctx)
	if outgoing.Get(RequestHeader) != "r1" || outgoing.Get(traceParent) != trace || outgoing.Get(Header) != "1499" {
		t.Error(outgoing)
	}
	if states := outgoing[traceState]; len(states) != 2 || states[1] != "b=2" {
		t.Error(states)
	}
	clock.goes(9 * second)
	if left := Outgoing(ctx).Get(Header); left != "0" {
		t.Error(left)
	}
	settled := begin(t, c, never)
	settled.Settle()
	if outgoing := Outgoing(settled.In(ctx)); len(outgoing) != 0 {
		t.Error(outgoing)
	}
	if outgoing := Outgoing(context.Background()); len(outgoing) != 0 {
		t.Error(outgoing)
	}
}

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
