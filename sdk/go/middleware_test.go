package bywash

// Tests of the middleware on net/http's server over loopback.

import (
	"context"
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

// patience is the maximum time of a wait. It is longer than any step takes on a busy machine, and
// shorter than a handler that is not stopped.
const patience = 20 * second

type site struct {
	t          *testing.T
	client     *http.Client
	url        string
	controller *Controller
	// The clock, which advances when a handler says that it runs: "/wait?runs=10ms".
	clock *clock
	// Handlers that have begun, how handlers ended, and the number of tokens that the garbage
	// collector has not freed.
	begun  chan string
	ended  chan error
	tokens atomic.Int64
}

func at(t *testing.T, server *httptest.Server) *site {
	s := &site{t: t}
	s.is(server)
	return s
}

func (s *site) is(server *httptest.Server) {
	s.t.Cleanup(server.Close)
	s.client, s.url = server.Client(), server.URL
	s.client.Timeout = patience
}

func overHTTP2(server *httptest.Server) {
	server.EnableHTTP2 = true
	server.StartTLS()
}

// versions are the functions that start a test server, by the version of HTTP.
var versions = map[string]func(*httptest.Server){"HTTP/1.1": (*httptest.Server).Start, "HTTP/2": overHTTP2}

func serve(t *testing.T, class Class, options ...Option) *site {
	t.Helper()
	return serveBy(t, (*httptest.Server).Start, class, options...)
}

func serveBy(t *testing.T, start func(*httptest.Server), class Class, options ...Option) *site {
	t.Helper()
	c, clock := controller(t, class)
	wrap := c.MiddlewareBy(func(r *http.Request) string {
		if r.URL.Path == "/untouched" {
			return ""
		}
		return class.Name
	}, options...)
	s := &site{t: t, controller: c, clock: clock, begun: make(chan string, 1000), ended: make(chan error, 1000)}
	server := httptest.NewUnstartedServer(wrap(http.HandlerFunc(s.handle)))
	start(server)
	s.is(server)
	return s
}

func (s *site) handle(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	if token := From(ctx); token != nil {
		s.tokens.Add(1)
		runtime.SetFinalizer(token, func(*Token) { s.tokens.Add(-1) })
	}
	s.begun <- r.URL.Path
	switch r.URL.Path {
	case "/stream":
		fmt.Fprint(w, "a")
	case "/deferred":
		check(s.t, From(ctx).CancelTermination())
	}
	if span := r.URL.Query().Get("runs"); span != "" {
		runs, err := time.ParseDuration(span)
		check(s.t, err)
		s.clock.goes(runs)
	}
	switch r.URL.Path {
	case "/quick":
		check(s.t, Checkpoint(ctx))
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
	case "/status":
		// Behave like a framework that writes a status when its handlers have returned.
		<-ctx.Done()
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(nil)
	case "/own":
		<-ctx.Done()
		http.Error(w, "own words", http.StatusServiceUnavailable)
	case "/stream", "/deferred", "/untouched":
		s.ended <- errors.Join(Checkpoint(ctx), ctx.Err())
		fmt.Fprint(w, "b")
	}
}

func (s *site) get(path string, fields ...string) (*http.Response, string) {
	s.t.Helper()
	request, err := http.NewRequest("GET", s.url+path, nil)
	check(s.t, err)
	for i := 0; i+1 < len(fields); i += 2 {
		request.Header.Add(fields[i], fields[i+1])
	}
	response, err := s.client.Do(request)
	if err != nil {
		s.t.Error(err)
		return &http.Response{}, ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	check(s.t, err)
	return response, string(body)
}

// visit sends a request and returns a function that makes the client leave.
func (s *site) visit(path string) context.CancelFunc {
	s.t.Helper()
	ctx, leave := context.WithCancel(context.Background())
	request, err := http.NewRequestWithContext(ctx, "GET", s.url+path, nil)
	must(s.t, err)
	go func() {
		if response, err := s.client.Do(request); err == nil {
			response.Body.Close()
		}
	}()
	return leave
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
	s := serve(t, within(time.Millisecond, 10*time.Millisecond))
	for _, path := range []string{"/wait", "/compute"} {
		response, body := s.get(path + "?runs=10ms")
		head := response.Header
		if response.StatusCode != 504 || head.Get("Retry-After") != "600" || head.Get("Proxy-Status") != "" {
			t.Fatal(path, response)
		}
		if !strings.Contains(body, "(ran_too_long)") || head.Get("Cache-Control") != "no-store" {
			t.Fatal(path, body, head)
		}
		if err := s.end(); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	s.answers(200, "/quick?runs=9ms")
	s.answers(200, "/nothing")
	if stats := s.stats(); stats.Lost != 2 || stats.Terminated != 2 || stats.Arrived != 4 {
		t.Fatalf("%+v", stats)
	}
}

func TestTheHandlersOwnWordsComeFirst(t *testing.T) {
	s := serve(t, within(time.Millisecond, 10*time.Millisecond))
	if response, body := s.get("/own?runs=10ms"); response.StatusCode != 503 || body != "own words\n" {
		t.Fatal(response, body)
	}
}

func TestWhatHasBegunOrIsDeferredOrHasNoClassIsNotTerminated(t *testing.T) {
	s := serve(t, within(time.Millisecond, 10*time.Millisecond))
	for path, expected := range map[string]string{"/stream": "ab", "/deferred": "b", "/untouched": "b"} {
		if response, body := s.get(path + "?runs=1s"); response.StatusCode != 200 || body != expected {
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
	load(t, s.controller, 100, 100)
	s.clock.goes(class.Interval)
	<-done
}

func TestWhoRunsThroughSeveralIntervalsIsTerminatedAllTheSame(t *testing.T) {
	class := within(50*time.Millisecond, 350*time.Millisecond)
	class.Interval = 100 * time.Millisecond
	c, clock := controller(t, class)
	wrap, err := c.Middleware("search")
	must(t, err)
	recorder := record(wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		token := From(r.Context())
		for end := 2 * class.Interval; end <= 4*class.Interval; end += class.Interval {
			clock.goes(class.Interval)
			// Only the timer looks: it looks again at the end of the next interval.
			until(t, func() bool { return time.Duration(token.notBefore.Load()) == min(end, class.RunMax) })
		}
		if r.Context().Err() != nil {
			t.Error("too early")
		}
		clock.goes(50 * time.Millisecond)
		select {
		case <-r.Context().Done():
		case <-time.After(patience):
			t.Error("it is not told")
		}
	})), "GET")
	if recorder.Code != 504 {
		t.Fatal(recorder)
	}
}

func TestTinyDeadlinesEndTheirOwnRequestsAndLowerNoThreshold(t *testing.T) {
	s := serve(t, within(time.Hour, time.Hour))
	for _, text := range []string{"20", "1", "0"} {
		response, body := s.get("/wait?runs=20ms", Header, text)
		if response.StatusCode != 504 || !strings.Contains(body, "(deadline)") {
			t.Fatal(text, response, body)
		}
		if head := response.Header; head.Get("Retry-After") != "" || head.Get("Cache-Control") != "no-store" {
			t.Fatal(text, head)
		}
	}
	// A request with no time left does not begin.
	s.answers(504, "/quick", Header, "0")
	if stats := s.stats(); stats.Deadline != 4 || stats.Lost != 0 {
		t.Fatalf("%+v", stats)
	}
}

func TestAClientWhoLeavesFreesTheHandler(t *testing.T) {
	for version, start := range versions {
		s := serveBy(t, start, within(time.Hour, time.Hour))
		for _, path := range []string{"/wait", "/compute"} {
			leave := s.visit(path)
			<-s.begun
			leave()
			var terminated *Terminated
			if err := s.end(); !errors.As(err, &terminated) || terminated.Reason != ClientLeft {
				t.Fatal(version, path, err)
			}
		}
		until(t, func() bool { return s.stats().Running == 0 })
		if stats := s.stats(); stats.ClientLeft != 2 || stats.Lost != 0 {
			t.Fatalf("%s: %+v", version, stats)
		}
	}
}

func TestWhoCancelsTerminationCompletesAlthoughItsClientLeaves(t *testing.T) {
	for version, start := range versions {
		var gone <-chan struct{}
		deferred, ended := make(chan struct{}), make(chan error, 1)
		handler, c := wrap(t, within(time.Hour, time.Hour), func(w http.ResponseWriter, r *http.Request) {
			check(t, From(r.Context()).CancelTermination())
			close(deferred)
			select {
			case <-gone:
			case <-time.After(patience):
				t.Error("nobody has left")
			}
			// A wrong reaction would happen within this time.
			select {
			case <-r.Context().Done():
			case <-time.After(100 * time.Millisecond):
			}
			ended <- errors.Join(Checkpoint(r.Context()), r.Context().Err())
		})
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			gone = r.Context().Done()
			handler.ServeHTTP(w, r)
		}))
		start(server)
		leave := at(t, server).visit("/")
		<-deferred
		leave()
		if err := <-ended; err != nil {
			t.Error(version, err)
		}
		until(t, func() bool { return c.Stats()["search"].Running == 0 })
		if stats := c.Stats()["search"]; stats.Deferred != 1 || stats.ClientLeft != 0 {
			t.Errorf("%s: %+v", version, stats)
		}
	}
}

func TestOverHTTP2ItIsTheSame(t *testing.T) {
	s := serveBy(t, overHTTP2, within(time.Millisecond, 10*time.Millisecond))
	for _, path := range []string{"/wait", "/compute"} {
		response, body := s.get(path + "?runs=10ms")
		if response.ProtoMajor != 2 || response.StatusCode != 504 || response.Header.Get("Retry-After") != "600" {
			t.Fatal(path, response)
		}
		if !strings.Contains(body, "(ran_too_long)") {
			t.Fatal(path, body)
		}
	}
	if response, body := s.get("/stream?runs=1s"); response.StatusCode != 200 || body != "ab" {
		t.Fatal(response, body)
	}
	response, body := s.get("/wait?runs=1ms", Header, "1")
	if response.StatusCode != 504 || !strings.Contains(body, "(deadline)") {
		t.Fatal(response, body)
	}
}

func TestADeadlineAroundUsIsNoClientWhoLeft(t *testing.T) {
	c, err := NewController(within(second, time.Hour))
	must(t, err)
	wrap, err := c.Middleware("search")
	must(t, err)
	ended, answered := make(chan error, 1), make(chan struct{})
	handler := wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		ended <- context.Cause(r.Context())
		// The handler's own answer would come first, if it were as quick as that of the outer
		// handler.
		<-answered
	}))
	server := httptest.NewServer(http.TimeoutHandler(handler, 10*time.Millisecond, ""))
	at(t, server).answers(503, "/")
	close(answered)
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
		check(t, http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience)))
		_, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader("read"))
		check(t, err)
	})))
	if _, body := at(t, server).get("/"); body != "read" {
		t.Fatal(body)
	}
	hijacks := httptest.NewServer(wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connection, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer connection.Close()
		fmt.Fprint(connection, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")
	})))
	if _, body := at(t, hijacks).get("/"); body != "hi" {
		t.Fatal(body)
	}
}

func TestOfTwoHundredAtOnceNothingStaysBehind(t *testing.T) {
	// The runtime may keep a stopped timer, and with it the token, until its time has come: so no
	// timer is set for longer than RunMin.
	class := within(second, time.Hour)
	class.Interval = 100 * time.Millisecond
	s := serve(t, class)
	s.answers(200, "/quick")
	s.client.CloseIdleConnections()
	var group sync.WaitGroup
	for i := 0; i < 200; i++ {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			if i%2 == 0 {
				s.answers(504, "/wait?runs=1ms", Header, "1")
			} else {
				s.answers(200, "/quick")
			}
		}(i)
	}
	group.Wait()
	s.client.CloseIdleConnections()
	until(t, func() bool { return s.stats().Running == 0 })
	// A goroutine that still waits would hold its token.
	until(t, func() bool { runtime.GC(); return s.tokens.Load() == 0 })
	if stats := s.stats(); stats.Deadline != 100 || stats.Arrived != 201 {
		t.Fatalf("%+v", stats)
	}
}

func TestAnEmpty200AfterTheTerminationIsNoAnswer(t *testing.T) {
	s := serve(t, within(10*time.Millisecond, 10*time.Millisecond))
	response, _ := s.get("/status?runs=20ms")
	if response.StatusCode != http.StatusGatewayTimeout || response.Header.Get("Cache-Control") != "no-store" {
		t.Error(response.Status, response.Header)
	}
}
