package bywash

// The use of a leased connection by one statement or its rows.
//
// If the context of a query is cancelled, a driver ends the query by closing the connection (which
// MariaDB does not notice). The daemon cancels only the query. So when a request is over, its
// driver learns of it after the daemon had time to act. The context that a driver gets here is
// cancelled together with the request's, but a moment later if the request is over and the daemon
// has been told. A connection whose query was cancelled in time goes back to its pool.
//
// The same holds for the end of a transaction: a driver that rolls back in a cancelled context
// (pgx) closes the connection instead.

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"time"
)

const (
	// headStart is how long the daemon has to cancel a query before its driver closes the
	// connection.
	headStart = 100 * time.Millisecond
	// controlTime is how long statements of transaction control may take after the end of their
	// request. Then their driver closes the connection.
	controlTime = time.Second
)

// Use is the use of a connection by one statement, until the statement has ended and its rows are
// closed.
type Use struct {
	of    *Connection
	token *Token
	lease *Lease
	// The request's context, and the driver's.
	from, ctx context.Context
	cancel    context.CancelFunc
	hasEnded  bool
}

// Context returns the context for the driver. If the request is over, it is cancelled a moment
// later than the request's own, so that the daemon cancels the query and the connection stays open.
func (u *Use) Context() context.Context { return u.ctx }

// End records that the statement has ended with err and that its rows are closed. It returns a
// *Terminated if the statement was cancelled because its request is over, else err. Further calls
// only map the error.
func (u *Use) End(err error) error {
	if u.hasEnded {
		return u.mapError(err)
	}
	u.hasEnded = true
	u.cancel()
	c := u.of
	c.isSkipped = err == driver.ErrSkip
	switch {
	case u.lease == nil:
	case c.database.number == "":
		u.lease.Release()
	case c.lease == u.lease:
		c.holds--
		// A statement that the driver wants prepared first comes again at once, under the same
		// lease.
		if c.holds == 0 && !c.isSkipped {
			c.release()
		}
	}
	return u.mapError(err)
}

// driverContext is the context that a driver gets. It may be cancelled later than the request's,
// and reports the same error.
type driverContext struct {
	context.Context
	from context.Context
}

func (d driverContext) Err() error {
	err := d.Context.Err()
	if err != nil && d.from.Err() != nil {
		return d.from.Err()
	}
	return err
}

// shield gives the driver a context that is cancelled this much later if the request is over. If
// only a context of the application has ended, the driver's has ended too.
func (u *Use) shield(wait time.Duration) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(u.from))
	var over <-chan struct{}
	if u.lease != nil {
		over = u.lease.conversation.over
	}
	stop := context.AfterFunc(u.from, func() {
		if u.token.Reason() != "" {
			late := time.NewTimer(wait)
			defer late.Stop()
			select {
			case <-late.C:
			case <-ctx.Done():
			case <-over:
			}
		}
		cancel(context.Cause(u.from))
	})
	if u.from.Err() != nil && u.token.Reason() == "" {
		// The function above runs on its own goroutine, so the driver could still send the statement.
		cancel(context.Cause(u.from))
	}
	u.ctx, u.cancel = driverContext{ctx, u.from}, func() {
		stop()
		cancel(nil)
	}
}

// mapError returns the error of a request that is over, if a statement was cancelled because of
// that; else err.
func (u *Use) mapError(err error) error {
	if err == nil || err == io.EOF || err == driver.ErrSkip || errors.Is(err, driver.ErrBadConn) || u.token == nil {
		return err
	}
	isOfContext := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if !isOfContext && !u.of.database.isCancelled(err) {
		return err
	}
	over := u.token.Checkpoint()
	if over == nil && !isOfContext {
		over = u.askReason()
	}
	if over != nil {
		return over
	}
	return err
}

// askReason asks the daemon by another lease whether the request of a cancelled query was stopped: a
// gateway may have told the daemon first. It returns a *Terminated, or nil if the request goes on.
func (u *Use) askReason() error {
	c := u.of
	if u.lease == nil || c.database.number == "" {
		return nil
	}
	if c.lease == u.lease && c.holds == 1 {
		// Its rows are still open, but no more of them come.
		c.release()
	}
	if c.lease != nil {
		return nil
	}
	again := u.lease.again()
	if c.isDoubtful {
		// The cancellation may still be under way. Until its end the daemon refuses each lease of
		// the connection, so the question names work in this process.
		again.database, again.connection = ownDatabase, c.stopClient.numbers.Add(1)
	}
	given, err := again.ask(u.token)
	if err == nil && given.stopped != "" {
		return u.token.stopped(given.stopped)
	}
	if err == nil || err == errNoAnswer {
		again.isUnanswered = err != nil
		if !again.Release() {
			c.request, c.isDoubtful = again.request, true
		}
	}
	return u.token.Checkpoint()
}
