package bywash

// net/http: a handler's context is cancelled once it is overdue or its client has left.
//
// It is cancelled with a cause (context.Cause is a *Terminated), not by a context's own deadline: that could
// neither be moved, when the threshold falls, nor taken back, when the response begins. For the same reason
// ctx.Deadline() tells nothing; a child context with a later deadline would rely on it. Token.Deadline does.
//
// The server's context is not the handler's parent: it ends when the client leaves, and a handler that has called
// CancelTermination is to finish its write all the same.

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
)

// Option changes a middleware.
type Option func(*middleware)

// DistrustDeadline ignores the deadlines that requests bring along.
func DistrustDeadline(m *middleware) { m.distrusts = true }

type middleware struct {
	controller *Controller
	classOf    func(*http.Request) string
	distrusts  bool
}

// Middleware terminates overdue requests of the handlers that it wraps, all of one class.
func (c *Controller) Middleware(class string, options ...Option) (func(http.Handler) http.Handler, error) {
	if _, err := c.of(class); err != nil {
		return nil, err
	}
	return c.MiddlewareBy(func(*http.Request) string { return class }, options...), nil
}

// MiddlewareBy asks of each request which class it is of. Those of no class, "", pass untouched; a class that is
// not declared is a mistake in the program, and panics.
func (c *Controller) MiddlewareBy(classOf func(*http.Request) string, options ...Option) func(http.Handler) http.Handler {
	m := &middleware{controller: c, classOf: classOf}
	for _, option := range options {
		option(m)
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.serve(next, w, r) })
	}
}

func (m *middleware) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	class := m.classOf(r)
	if class == "" {
		next.ServeHTTP(w, r)
		return
	}
	granted, err := m.controller.of(class)
	if err != nil {
		panic(err)
	}
	left := never
	if !m.distrusts {
		left = timeLeft(r.Header)
	}
	token := m.controller.begin(granted, left)
	defer token.End()
	// Who comes with nothing left need not begin.
	if token.IsTerminated() {
		refuse(w, r, token.terminated())
		return
	}
	from := r.Context()
	ctx, cancel := context.WithCancelCause(context.WithValue(context.WithoutCancel(from), key{}, token))
	defer cancel(nil)
	token.arm(cancel)
	stop := context.AfterFunc(from, func() { token.leave(whyGone(from)) })
	defer stop()
	response := &response{ResponseWriter: w, token: token}
	next.ServeHTTP(response, r.WithContext(ctx))
	// A handler that has just returned in time is not asked again.
	if reason := token.why(); reason != "" && reason != ClientLeft && !response.hasBegun {
		refuse(w, r, token.terminated())
	}
}

// whyGone tells a client who has left from the deadline of somebody around us (http.TimeoutHandler, for one).
func whyGone(from context.Context) Reason {
	if errors.Is(from.Err(), context.DeadlineExceeded) {
		return Deadline
	}
	return ClientLeft
}

// response notices the first byte. What a handler answers of itself counts, also once it is over.
type response struct {
	http.ResponseWriter
	token    *Token
	hasBegun bool
}

func (r *response) begins() {
	if !r.hasBegun {
		r.hasBegun = true
		r.token.settle()
	}
}

func (r *response) WriteHeader(status int) {
	// What is said in advance (103 Early Hints) is no response yet.
	if status >= 200 || status == http.StatusSwitchingProtocols {
		r.begins()
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *response) Write(chunk []byte) (int, error) {
	r.begins()
	return r.ResponseWriter.Write(chunk)
}

// ReadFrom lets a file be sent without a copy.
func (r *response) ReadFrom(from io.Reader) (int64, error) {
	r.begins()
	return io.Copy(r.ResponseWriter, from)
}

// Flush and Hijack are for handlers that do not know http.ResponseController.
func (r *response) Flush() {
	r.begins()
	// A writer that cannot flush has nothing to flush.
	_ = http.NewResponseController(r.ResponseWriter).Flush()
}

func (r *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	r.begins()
	return http.NewResponseController(r.ResponseWriter).Hijack()
}

// Unwrap is for http.ResponseController.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }
