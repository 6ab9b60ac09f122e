package bywash

// Tests of the answer, and of the writer that a handler is given.

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

func wrap(t *testing.T, class Class, handler http.HandlerFunc) (http.Handler, *Controller) {
	t.Helper()
	c, err := NewController(class)
	must(t, err)
	wrap, err := c.Middleware(class.Name)
	must(t, err)
	return wrap(handler), c
}

func record(handler http.Handler, method string, fields ...string) *httptest.ResponseRecorder {
	recorder, request := httptest.NewRecorder(), httptest.NewRequest(method, "/", nil)
	for i := 0; i+1 < len(fields); i += 2 {
		request.Header.Add(fields[i], fields[i+1])
	}
	handler.ServeHTTP(recorder, request)
	return recorder
}

func wait(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func TestTheAnswerHasNoFieldOfTheHandler(t *testing.T) {
	handler, _ := wrap(t, within(time.Millisecond, 10*time.Millisecond), func(w http.ResponseWriter, r *http.Request) {
		for _, field := range []string{"Content-Disposition", "Location", "Content-Encoding", "Etag", "X-Own"} {
			w.Header().Set(field, "own")
		}
		w.Header().Add("Set-Cookie", "own")
		w.Header().Del("X-Kept")
		w.WriteHeader(http.StatusEarlyHints)
		wait(w, r)
	})
	around := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Kept", "kept")
		w.Header().Set("Set-Cookie", "kept")
		handler.ServeHTTP(w, r)
	})
	s := at(t, httptest.NewServer(around))
	for _, reason := range []Reason{RanTooLong, Deadline} {
		expected := http.Header{
			"Cache-Control": {"no-store"}, "Content-Type": {"text/plain; charset=utf-8"},
			"X-Kept": {"kept"}, "Set-Cookie": {"kept"},
		}
		var fields []string
		if reason == RanTooLong {
			expected.Set("Retry-After", "600")
		} else {
			fields = []string{Header, "1"}
		}
		response, body := s.get("/", fields...)
		expected.Set("Content-Length", strconv.Itoa(len(body)))
		response.Header.Del("Date")
		if !strings.Contains(body, string(reason)) || !reflect.DeepEqual(response.Header, expected) {
			t.Error(reason, body, response.Header)
		}
	}
}

func TestOfTwoMiddlewaresTheOuterOneDecides(t *testing.T) {
	var token *Token
	quick := func(_ http.ResponseWriter, r *http.Request) { token = From(r.Context()) }
	inside, inner := wrap(t, NewClass("inner", second, second), quick)
	outer, err := NewController(NewClass("outer", second, second))
	must(t, err)
	class := "outer"
	outside := outer.MiddlewareBy(func(*http.Request) string { return class })(inside)
	record(outside, "GET")
	if token.Class() != "outer" || inner.Stats()["inner"].Arrived != 0 || outer.Stats()["outer"].Arrived != 1 {
		t.Fatal(token.Class(), inner.Stats(), outer.Stats())
	}
	// A request without a class outside passes there, and the inner middleware decides.
	class = ""
	record(outside, "GET")
	if token.Class() != "inner" || inner.Stats()["inner"].Arrived != 1 || outer.Stats()["outer"].Arrived != 1 {
		t.Fatal(token.Class(), inner.Stats(), outer.Stats())
	}
}

// The client only shuts down its sending side. net/http takes that for a client that has left, but
// the client still reads.
func TestWhoIsToldThatItsClientHasLeftAndSaysNothingIsAnsweredFor(t *testing.T) {
	handler, c := wrap(t, within(time.Hour, time.Hour), wait)
	server := httptest.NewServer(handler)
	defer server.Close()
	connection, err := net.Dial("tcp", server.Listener.Addr().String())
	must(t, err)
	defer connection.Close()
	must(t, connection.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(connection, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	must(t, err)
	must(t, connection.(*net.TCPConn).CloseWrite())
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	must(t, err)
	body, err := io.ReadAll(response.Body)
	must(t, err)
	if response.StatusCode != 504 || !strings.Contains(string(body), "(client_left)") {
		t.Fatal(response, string(body))
	}
	if response.Header.Get("Retry-After") != "" || c.Stats()["search"].ClientLeft != 1 {
		t.Fatal(response, c.Stats())
	}
}

// stiff is a response writer that can be neither hijacked nor flushed.
type stiff struct{ *httptest.ResponseRecorder }

var errStiff = errors.New("it is stiff")

func (stiff) FlushError() error                            { return errStiff }
func (stiff) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, errStiff }

func TestWhatCouldNotBeFlushedOrHijackedHasNotBegun(t *testing.T) {
	handler, c := wrap(t, within(time.Millisecond, 10*time.Millisecond), func(w http.ResponseWriter, r *http.Request) {
		controller := http.NewResponseController(w)
		if err := controller.Flush(); !errors.Is(err, errStiff) {
			t.Error(err)
		}
		if _, _, err := controller.Hijack(); !errors.Is(err, errStiff) {
			t.Error(err)
		}
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(patience):
			t.Error("it is taken for one that has begun")
		}
	})
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(stiff{recorder}, httptest.NewRequest("GET", "/", nil))
	if recorder.Code != 504 || c.Stats()["search"].Lost != 1 {
		t.Fatal(recorder, c.Stats())
	}
}

func TestAResponseControllerFlushesAndSettles(t *testing.T) {
	handler, _ := wrap(t, within(time.Hour, time.Hour), func(w http.ResponseWriter, r *http.Request) {
		must(t, http.NewResponseController(w).Flush())
		if _, isBound := From(r.Context()).Deadline(); isBound {
			t.Error("the response has begun")
		}
	})
	if recorder := record(handler, "GET"); !recorder.Flushed {
		t.Fatal(recorder)
	}
}

type reads func([]byte) (int, error)

func (r reads) Read(chunk []byte) (int, error) { return r(chunk) }

func TestACopyBeginsWithTheFirstByteThatIsRead(t *testing.T) {
	text := strings.Repeat("read", 1000)
	handler, _ := wrap(t, within(time.Hour, time.Hour), func(w http.ResponseWriter, r *http.Request) {
		isBound := func() bool { _, is := From(r.Context()).Deadline(); return is }
		source, wasBound := strings.NewReader(text), []bool{}
		copied, err := io.Copy(w, reads(func(chunk []byte) (int, error) {
			wasBound = append(wasBound, isBound())
			return source.Read(chunk[:min(len(chunk), 500)])
		}))
		must(t, err)
		if copied != int64(len(text)) || !wasBound[0] || wasBound[1] {
			t.Error(copied, wasBound)
		}
	})
	if recorder := record(handler, "GET"); recorder.Body.String() != text {
		t.Fatal(recorder)
	}
}
