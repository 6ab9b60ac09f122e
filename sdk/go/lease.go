package bywash

// A lease: from now on a connection works for a request, until it is released. The answers to a
// lease and their consequences are in sdk/README.md.

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
)

const (
	// beyondDeadline is how long a lease outlasts the latest deadline of its request. The stop
	// comes after that deadline and must find the lease.
	beyondDeadline = 10 * time.Second
	// ownDatabase is the database name for leases that only their holder can end.
	ownDatabase = "self"
)

// ErrTaken is returned if another client of the daemon has leased this connection as well, or if a
// cancellation that was aimed at another request may hit it: close it, and take another one.
var ErrTaken = errors.New("bywash: a cancellation may hit the connection, or another client has leased it: close it")

// Lease is the time in which a connection works for a request. Any goroutine may release it.
type Lease struct {
	stopClient *StopClient
	// The conversation of the lease; nil if there is nothing to release.
	conversation      *conversation
	request, database string
	connection        uint64
	// Whether the lease was requested and not answered: the daemon may have it or not.
	isUnanswered bool
	// Ends the context of a lease of this process's own.
	ended  func()
	once   sync.Once
	isGood bool
}

// Lease leases a connection: from now on it works for the request that ctx belongs to. The argument
// connection is the database's number of the connection. If the request cannot be stopped, or there
// is no daemon, the lease does nothing. The error is a *Terminated if the request is over, in which
// case the query must not begin; or it is ErrTaken. After a *Terminated, close the connection if
// Release returns false.
func (s *StopClient) Lease(ctx context.Context, database string, connection uint64) (*Lease, error) {
	return s.lease(ctx, database, connection, nil)
}

// Own leases something in this process that stops when its context is cancelled, and returns such a
// context. The context ends with the lease.
func (s *StopClient) Own(ctx context.Context) (context.Context, *Lease, error) {
	token := From(ctx)
	if token == nil {
		s.isOutside()
		return ctx, &Lease{isGood: true}, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	lease, err := s.lease(ctx, ownDatabase, s.numbers.Add(1), func(reason Reason) {
		if over := token.stopped(reason); over != nil {
			cancel(over)
		}
	})
	if err != nil {
		cancel(err)
		return ctx, nil, err
	}
	lease.ended = func() { cancel(nil) }
	return ctx, lease, nil
}

func (s *StopClient) lease(ctx context.Context, database string, connection uint64, told func(Reason)) (*Lease, error) {
	none := &Lease{isGood: true}
	if over := s.Checkpoint(ctx); over != nil {
		return none, over
	}
	token := From(ctx)
	if token == nil || token.name == "" {
		s.isOutside()
		return none, nil
	}
	c := s.conversation()
	if c == nil {
		s.isUnreachable()
		return none, nil
	}
	lease := &Lease{stopClient: s, conversation: c, database: database, connection: connection, request: token.name}
	if told != nil {
		c.tells(connection, told)
	}
	given, err := lease.ask(token)
	if err = s.isLeased(lease, token, given, err); err == nil {
		// The request may have come to its end meanwhile.
		if err = s.Checkpoint(ctx); err != nil {
			lease.Release()
		}
	}
	if lease.conversation == nil && told != nil {
		c.tells(connection, nil)
	}
	return lease, err
}

// Checkpoint returns a *Terminated if the request that ctx belongs to is over. Stats().Stopped then
// counts the query that does not begin because of that. It is for authors of a wrapper around a
// driver.
func (s *StopClient) Checkpoint(ctx context.Context) error {
	over := Checkpoint(ctx)
	if over != nil {
		s.stopped.Add(1)
	}
	return over
}

// ask sends the LEASE and waits for its answer. It returns a *Terminated, errNothing or errOver if it
// sent no line, and errNoAnswer if the daemon did not answer.
func (l *Lease) ask(token *Token) (answer, error) {
	answered, isSaid := make(chan answer, 1), false
	err := token.leases(l.stopClient, func(left time.Duration) {
		isSaid = l.conversation.say("LEASE "+l.words()+notAfter(left), answered)
	})
	switch {
	case err != nil:
		return answer{}, err
	case !isSaid:
		return answer{}, errOver
	}
	return l.conversation.hears(answered)
}

// isLeased evaluates the answer to a lease.
func (s *StopClient) isLeased(lease *Lease, token *Token, given answer, err error) error {
	switch {
	case err == errNoAnswer:
		s.isUnreachable()
		// A cancellation may be under way.
		lease.isUnanswered = true
		return nil
	case err == nil && given.isDone:
		s.leased.Add(1)
		return nil
	}
	lease.conversation, lease.isGood = nil, true
	switch {
	case err == errNothing:
		return nil
	case err == errOver:
		s.isUnreachable()
		return nil
	case err == nil && given.stopped != "":
		err = token.stopped(given.stopped)
	case given.fault == "taken":
		s.taken.Add(1)
		return ErrTaken
	}
	if err != nil {
		s.stopped.Add(1)
		return err
	}
	s.isRefused("lease", &s.saysLeaseRefused, given)
	return nil
}

// notAfter returns the end of a lease that is never released, where left is the longest time that
// its request can have left. Without such a time the lease ends with the conversation.
func notAfter(left time.Duration) string {
	if left == never {
		return ""
	}
	return fmt.Sprintf(" not-after=%d", time.Now().Add(left+beyondDeadline).UnixMilli())
}

// Release ends the lease. If it returns false, a cancellation that was aimed at the connection may
// be under way, and the connection must be closed. Further calls have no effect.
func (l *Lease) Release() bool {
	l.once.Do(func() {
		if l.conversation != nil {
			l.release()
		}
		if l.ended != nil {
			l.ended()
		}
	})
	return l.isGood
}

func (l *Lease) release() {
	given, err := l.conversation.ask("RELEASE " + l.words())
	l.isGood = err == nil && !l.isUnanswered && (given.isDone || given.fault == "not_leased")
	if l.database == ownDatabase {
		// A stop only ends the context, which ends here anyway.
		l.conversation.tells(l.connection, nil)
		l.isGood = true
	}
	if !l.isGood {
		l.stopClient.doubtful.Add(1)
	}
}

func (l *Lease) words() string {
	return l.request + " " + l.database + " " + strconv.FormatUint(l.connection, 10)
}

// again returns a lease of the same connection for the same request, which was not requested yet.
func (l *Lease) again() *Lease {
	return &Lease{
		stopClient: l.stopClient, conversation: l.conversation,
		request: l.request, database: l.database, connection: l.connection,
	}
}

// isHeld returns whether there is anything to release.
func (l *Lease) isHeld() bool { return l.conversation != nil }
