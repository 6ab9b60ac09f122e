package bywash

// The middleware on net/http's server over loopback.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Longer than anything takes on a busy machine, shorter than a handler that nobody stops.
const patience = 20 * second

type site struct {
	t          *testing.T
	controller *Controller
	url        string
	// Handlers that began, how they ended, and tokens that the garbage collector has not taken.
	begun  chan string
	ended  chan error
	tokens atomic.Int64
}

func serve(t *testing.T, class Class, options ...Option) *site {
	t.Helper()
	c, err := NewController(class)
	must(t, err)
	s := &site{t: t, controller: c, begun: make(chan string, 1000), ended: make(chan error, 1000)}
	wrap := c.MiddlewareBy(func(r *http.Request) string {
		if r.URL.Path == "/untouched" {
			return ""
		}
		return class.Name
	}, options...)
	server := httptest.NewServer(wrap(http.HandlerFunc(s.handle)))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *site) handle(w http.ResponseWriter, r *http.Request) {
	if token := From(r.Context()); token != nil {
		s.tokens.Add(1)
		runtime.SetFinalizer(token, func(*Token) { s.tokens.Add(-1) })
	}
	s.begun <- r.URL.Path
	switch ctx := r.Context(); r.URL.Path {
	case "/quick":
		fmt.Fprint(w, "done")
	case "/nothing":
	case "/wait":
		<-ctx.Done()
		s.ended <- context.Cause(ctx)
	case "/compute":
		for Checkpoint(ctx) == nil {
			runtime.Gosched()
		}
		s.ended <- Checkpoint(ctx)
	case "/own":
		<-ctx.Done()
		http.Error(w, "own words", http.StatusServiceUnavailable)
	case "/stream", "/deferred", "/untouched":
		if r.URL.Path == "/stream" {
			fmt.Fprint(w, "a")
		}
		if token := From(ctx); r.URL.Path == "/deferred" {
			must(s.t, token.CancelTermination())
		}
		select {
		case <-ctx.Done():
		case <-time.After(second):
		}
		s.ended <- errors.Join(ctx.Err(), Checkpoint(ctx))
		fmt.Fprint(w, "b")
	}
}

func (s *site) get(path string, fields ...string) (*http.Response, string) {
	s.t.Helper()
	request, err := http.NewRequest("GET", s.url+path, nil)
	must(s.t, err)
	for i := 0; i+1 < len(fields); i += 2 {
		request.Header.Add(fields[i], fields[i+1])
	}
	response, err := (&http.Client{Timeout: patience}).Do(request)
	if err != nil {
		s.t.Error(err)
		return &http.Response{}, ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(s.t, err)
	return response, string(body)
}

func (s *site) answers(status int, path string, fields ...string) {
	s.t.Helper()
	if response, body := s.get(path, fields...); response.StatusCode != status {
		s.t.Errorf("%s: %d, not %d: %s", path, response.StatusCode, status, body)
	}
}

func (s *site) end() error {
	s.t.Helper()
	select {
	case err := <-s.ended:
		return err
	case <-time.After(patience):
		s.t.Fatal("the handler has not ended")
		return nil
	}
}

func (s *site) stats() Stats { return s.controller.Stats()["search"] }

func until(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come about")
		}
	}
}

func within(least, most time.Duration) Class {
	class := NewClass("search", least, most)
	class.Interval = 10 * time.Minute
	return class
}

func TestALongHandlerGets504AndAShortOne200(t *testing.T) {
	s := serve(t, within(50*time.Millisecond, 500*time.Millisecond))
	for _, path := range []string{"/wait", "/compute"} {
		began := time.Now()
		response, body := s.get(path)
		head := response.Header
		if response.StatusCode != 504 || head.Get("Retry-After") != "600" || head.Get("Proxy-Status") != "" {
			t.Fatal(path, response)
		}
		if !strings.Contains(body, "(ran_too_long)") || head.Get("Cache-Control") != "no-store" {
			t.Fatal(path, body, head)
		}
		if took := time.Since(began); took < 500*time.Millisecond {
			t.Fatal(path, "too early", took)
		}
		if err := s.end(); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	s.answers(200, "/quick")
	s.answers(200, "/nothing")
	if stats := s.stats(); stats.Lost != 2 || stats.Terminated != 2 || stats.Arrived != 4 {
		t.Fatalf("%+v", stats)
	}
}

func TestWhoAcceptsJSONGetsAProblem(t *testing.T) {
	s := serve(t, within(time.Millisecond, 10*time.Millisecond))
	response, body := s.get("/wait", "Accept", "application/json")
	var problem problem
	must(t, json.Unmarshal([]byte(body), &problem))
	if problem.Status != 504 || problem.Reason != RanTooLong || problem.RetryAfter != 600 {
		t.Fatal(body)
	}
	if response.Header.Get("Content-Type") != "application/problem+json" {
		t.Fatal(response)
	}
	if _, body = s.get("/wait", "Accept", "application/json", Header, "0"); strings.Contains(body, "retry-after") {
		t.Fatal(body)
	}
}

func TestTheHandlersOwnWordsComeFirst(t *testing.T) {
	s := serve(t, within(time.Millisecond, 10*time.Millisecond))
	if response, body := s.get("/own"); response.StatusCode != 503 || body != "own words\n" {
		t.Fatal(response, body)
	}
}

func TestWhatHasBegunOrIsDeferredOrHasNoClassIsNotTerminated(t *testing.T) {
	s := serve(t, within(50*time.Millisecond, 500*time.Millisecond))
	for path, expected := range map[string]string{"/stream": "ab", "/deferred": "b", "/untouched": "b"} {
		if response, body := s.get(path); response.StatusCode != 200 || body != expected {
			t.Error(path, response.StatusCode, body)
		}
		if err := s.end(); err != nil {
			t.Error(path, err)
		}
	}
	if stats := s.stats(); stats.Arrived != 2 || stats.Lost != 0 || stats.Deferred != 1 {
		t.Errorf("%+v", stats)
	}
}

func TestAFallingThresholdReachesWhoRuns(t *testing.T) {
	class := within(50*time.Millisecond, time.Hour)
	class.Interval = 200 * time.Millisecond
	s := serve(t, class)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.answers(504, "/wait")
	}()
	<-s.begun
	for over := false; !over; {
		must(t, s.controller.Arrived("search"))
		must(t, s.controller.Lost("search"))
		select {
		case <-done:
			over = true
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestWhoRunsThroughSeveralIntervalsIsTerminatedAllTheSame(t *testing.T) {
	class := within(50*time.Millisecond, 350*time.Millisecond)
	class.Interval = 100 * time.Millisecond
	s := serve(t, class)
	began := time.Now()
	s.answers(504, "/wait")
	if took := time.Since(began); took < class.RunMax {
		t.Fatal("too early", took)
	}
}

func TestTinyDeadlinesEndTheirOwnRequestsAndLowerNoThreshold(t *testing.T) {
	s := serve(t, within(time.Hour, time.Hour))
	for _, text := range []string{"20", "1", "0"} {
		response, body := s.get("/wait", Header, text)
		if response.StatusCode != 504 || !strings.Contains(body, "(deadline)") {
			t.Fatal(text, response, body)
		}
		if head := response.Header; head.Get("Retry-After") != "" || head.Get("Cache-Control") != "no-store" {
			t.Fatal(text, head)
		}
	}
	// Who comes with nothing left does not begin.
	s.answers(504, "/quick", Header, "0")
	for _, nonsense := range []string{"-1", "1.5", "0000000000", "x", "", "+1"} {
		s.answers(200, "/quick", Header, nonsense)
	}
	s.answers(200, "/quick", Header, "0", Header, "0")
	if stats := s.stats(); stats.Deadline != 4 || stats.Lost != 0 {
		t.Fatalf("%+v", stats)
	}
	serve(t, within(second, second), DistrustDeadline).answers(200, "/quick", Header, "0")
}

func TestAClientWhoLeavesFreesTheHandler(t *testing.T) {
	s := serve(t, within(time.Hour, time.Hour))
	for _, path := range []string{"/wait", "/compute"} {
		ctx, leave := context.WithCancel(context.Background())
		request, err := http.NewRequestWithContext(ctx, "GET", s.url+path, nil)
		must(t, err)
		go func() { _, _ = http.DefaultClient.Do(request) }()
		<-s.begun
		leave()
		var terminated *Terminated
		if err := s.end(); !errors.As(err, &terminated) || terminated.Reason != ClientLeft {
			t.Fatal(path, err)
		}
	}
	until(t, func() bool { return s.stats().Running == 0 })
	if stats := s.stats(); stats.ClientLeft != 2 || stats.Lost != 0 {
		t.Fatalf("%+v", stats)
	}
}

func TestADeadlineAroundUsIsNoClientWhoLeft(t *testing.T) {
	c, err := NewController(within(second, time.Hour))
	must(t, err)
	wrap, err := c.Middleware("search")
	must(t, err)
	ended := make(chan error, 1)
	handler := wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		ended <- context.Cause(r.Context())
	}))
	server := httptest.NewServer(http.TimeoutHandler(handler, 10*time.Millisecond, ""))
	defer server.Close()
	(&site{t: t, url: server.URL}).answers(503, "/")
	var terminated *Terminated
	if err := <-ended; !errors.As(err, &terminated) || terminated.Reason != Deadline {
		t.Fatal(err)
	}
}

func TestWritersKeepTheirAbilities(t *testing.T) {
	c, err := NewController(within(second, time.Hour))
	must(t, err)
	wrap, err := c.Middleware("search")
	must(t, err)
	server := httptest.NewServer(wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		if _, isBound := From(r.Context()).Deadline(); !isBound {
			t.Error("a hint is no response")
		}
		w.(http.Flusher).Flush()
		if _, isBound := From(r.Context()).Deadline(); isBound {
			t.Error("the response has begun")
		}
		must(t, http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience)))
		_, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader("read"))
		must(t, err)
	})))
	defer server.Close()
	if _, body := (&site{t: t, url: server.URL}).get("/"); body != "read" {
		t.Fatal(body)
	}
	hijacks := httptest.NewServer(wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connection, _, err := w.(http.Hijacker).Hijack()
		must(t, err)
		defer connection.Close()
		fmt.Fprint(connection, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")
	})))
	defer hijacks.Close()
	if _, body := (&site{t: t, url: hijacks.URL}).get("/"); body != "hi" {
		t.Fatal(body)
	}
}

func TestOfTwoHundredAtOnceNothingStaysBehind(t *testing.T) {
	s := serve(t, within(100*time.Millisecond, time.Hour))
	s.answers(200, "/quick")
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	var group sync.WaitGroup
	for i := 0; i < 200; i++ {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			if i%2 == 0 {
				s.answers(504, "/wait", Header, "150")
			} else {
				s.answers(200, "/quick")
			}
		}(i)
	}
	group.Wait()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	until(t, func() bool { return s.stats().Running == 0 })
	// A timer that is still armed, or a goroutine that still waits, would hold its token.
	until(t, func() bool { runtime.GC(); return s.tokens.Load() == 0 })
	if stats := s.stats(); stats.Deadline != 100 || stats.Arrived != 201 {
		t.Fatalf("%+v", stats)
	}
}
