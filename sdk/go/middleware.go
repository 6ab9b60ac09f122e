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
	"maps"
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
	// Names that requests bring along are not taken.
	isNameless bool
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
	// A middleware around us has decided.
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
	// Who comes with nothing left need not begin.
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
	// net/http removes the temporary files of an upload that it finds in the request that it has made.
	defer func() { r.MultipartForm = request.MultipartForm }()
	next.ServeHTTP(response, request)
	// A handler that has just returned in time is not asked again. Who has left gets an answer as well: net/http
	// takes a client who has only ended his own side for one who has left, and would answer 200.
	if token.Reason() != "" && !response.hasBegun {
		// Of the fields that are set only those count that were there before the handler.
		head := w.Header()
		clear(head)
		maps.Copy(head, before)
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
//
// A framework that writes a status when its handlers have returned (gin) says nothing for a handler that was told: an
// empty 200 after the termination is no answer, and the middleware answers instead.
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
	// It follows from the first byte of a body, if one comes.
	if status == http.StatusOK && r.isUnanswered() {
		return
	}
	// What is said in advance (103 Early Hints) is no response yet.
	if status >= 200 || status == http.StatusSwitchingProtocols {
		r.begins()
	}
	r.ResponseWriter.WriteHeader(status)
}

// isUnanswered says whether its handler has been told that it is over, and has not begun to answer.
func (r *response) isUnanswered() bool { return !r.hasBegun && r.token.Reason() != "" }

func (r *response) Write(chunk []byte) (int, error) {
	if len(chunk) == 0 && r.isUnanswered() {
		return 0, nil
	}
	r.begins()
	return r.ResponseWriter.Write(chunk)
}

// ReadFrom lets a file be sent without a copy, but for its beginning: until something is read, nothing goes out.
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

// Flush is FlushError for handlers that do not know http.ResponseController.
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

// Unwrap is for http.ResponseController.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }
