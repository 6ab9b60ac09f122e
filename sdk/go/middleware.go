package bywash

// net/http: a handler's context is cancelled once its request is overdue or its client has left.
//
// It is cancelled with a cause (context.Cause is a *Terminated), not by a context's own deadline.
// Such a deadline could neither be moved when the threshold falls, nor removed when the response
// begins. For the same reason ctx.Deadline() reports no deadline: a child context with a later
// deadline would rely on it. Token.Deadline does report it.
//
// The server's context is not the handler's parent: it ends when the client leaves, and a handler
// that has called CancelTermination must be able to finish its write.

import (
	"bufio"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
)

// Option changes a middleware.
type Option func(*middleware)

// DistrustDeadline makes the middleware ignore the deadlines in the headers of requests.
func DistrustDeadline(m *middleware) { m.distrusts = true }

type middleware struct {
	controller *Controller
	classOf    func(*http.Request) string
	distrusts  bool
	// Whether names that requests bring along are ignored.
	isNameless bool
}

// Middleware returns a middleware that terminates overdue requests of the handlers that it wraps,
// all of one class.
func (c *Controller) Middleware(class string, options ...Option) (func(http.Handler) http.Handler, error) {
	if _, err := c.of(class); err != nil {
		return nil, err
	}
	return c.MiddlewareBy(func(*http.Request) string { return class }, options...), nil
}

// MiddlewareBy returns a middleware that calls classOf to get the class of each request. A request
// with the class "" passes untouched. An undeclared class is a bug in the program, and panics.
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
	// An outer middleware has decided already.
	if From(r.Context()) != nil {
		next.ServeHTTP(w, r)
		return
	}
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
	token.Bring(r.Header)
	if m.isNameless || token.name == "" {
		token.name = newName()
	}
	// A request that arrives with no time left does not begin.
	if token.look() != "" {
		refuse(w, r, token.terminated())
		return
	}
	before, from := w.Header().Clone(), r.Context()
	ctx, cancel := context.WithCancelCause(token.In(context.WithoutCancel(from)))
	defer cancel(nil)
	token.arm(cancel)
	stop := context.AfterFunc(from, func() { token.leave(whyGone(from)) })
	defer stop()
	response, request := &response{ResponseWriter: w, token: token}, r.WithContext(ctx)
	// net/http only removes temporary files of an upload that it finds in the request that it made
	// itself.
	defer func() { r.MultipartForm = request.MultipartForm }()
	next.ServeHTTP(response, request)
	// A handler that has just returned in time is not checked again. A client that has left is
	// answered as well: net/http cannot tell it from a client that has only shut down its sending
	// side, and would answer 200.
	if token.Reason() != "" && !response.hasBegun {
		// Only the fields that were set before the handler count.
		head := w.Header()
		clear(head)
		maps.Copy(head, before)
		refuse(w, r, token.terminated())
	}
}

// whyGone returns why the context of a request ended: its client has left, or the deadline of an
// outer handler (for example http.TimeoutHandler) is over.
func whyGone(from context.Context) Reason {
	if errors.Is(from.Err(), context.DeadlineExceeded) {
		return Deadline
	}
	return ClientLeft
}

// response is a response writer that notices the first byte. The handler's own answer counts, even
// if the request is over.
//
// Some frameworks (gin) write a status when their handlers have returned. For a handler that was
// notified, that is not an answer: an empty 200 after the termination is dropped, and the
// middleware answers instead.
type response struct {
	http.ResponseWriter
	token    *Token
	hasBegun bool
}

func (r *response) begins() {
	if !r.hasBegun {
		r.hasBegun = true
		r.token.Settle()
	}
}

func (r *response) WriteHeader(status int) {
	// The status follows with the first byte of a body, if there is one.
	if status == http.StatusOK && r.isUnanswered() {
		return
	}
	// An informational status (103 Early Hints) does not begin the response.
	if status >= 200 || status == http.StatusSwitchingProtocols {
		r.begins()
	}
	r.ResponseWriter.WriteHeader(status)
}

// isUnanswered returns whether the handler has been notified that its request is over, and has not
// begun to answer.
func (r *response) isUnanswered() bool { return !r.hasBegun && r.token.Reason() != "" }

func (r *response) Write(chunk []byte) (int, error) {
	if len(chunk) == 0 && r.isUnanswered() {
		return 0, nil
	}
	r.begins()
	return r.ResponseWriter.Write(chunk)
}

// ReadFrom sends a file without copying it, except for its beginning. The response begins only when
// something was read.
func (r *response) ReadFrom(from io.Reader) (int64, error) {
	beginning, err := io.CopyN(struct{ io.Writer }{r}, from, 512)
	if err == io.EOF {
		return beginning, nil
	} else if err != nil {
		return beginning, err
	}
	rest, err := io.Copy(r.ResponseWriter, from)
	return beginning + rest, err
}

// Flush calls FlushError, for handlers that do not use http.ResponseController.
func (r *response) Flush() { _ = r.FlushError() }

func (r *response) FlushError() error {
	err := http.NewResponseController(r.ResponseWriter).Flush()
	if err == nil {
		r.begins()
	}
	return err
}

func (r *response) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	connection, buffer, err := http.NewResponseController(r.ResponseWriter).Hijack()
	if err == nil {
		r.begins()
	}
	return connection, buffer, err
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }
