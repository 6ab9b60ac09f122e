package bywash

// The use of a leased connection, by one statement or by its rows.
//
// A driver ends a query whose context is cancelled by closing the connection (and MariaDB does not notice). The
// daemon cancels the query alone. So when a request is over, its driver hears of it after the daemon has had its
// chance: the context that a driver gets here is cancelled with that of the request, but if the request is over
// and the daemon has been told, a moment later. A connection that was cancelled in time goes back to its pool.

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"time"
)

// headStart is how long the daemon has to cancel a query before its driver closes the connection.
const headStart = 100 * time.Millisecond

type use struct {
	of    *connection
	token *Token
	lease *Lease
	// The request's, and the driver's.
	from, ctx context.Context
	cancel    context.CancelFunc
	hasEnded  bool
}

// query runs what gives rows. What only controls a transaction, or gives locks back, is not leased.
func (c *connection) query(
	ctx context.Context, isControl bool, run func(context.Context) (driver.Rows, error),
) (driver.Rows, error) {
	if isControl {
		c.release()
		return run(ctx)
	}
	use, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	found, err := run(use.ctx)
	if err != nil {
		return nil, use.end(err)
	}
	return &rows{found, use}, nil
}

// exec is the same for what gives none.
func (c *connection) exec(
	ctx context.Context, isControl bool, run func(context.Context) (driver.Result, error),
) (driver.Result, error) {
	if isControl {
		c.release()
		return run(ctx)
	}
	use, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	result, err := run(use.ctx)
	return result, use.end(err)
}

// begin leases the connection for a statement of the request that ctx belongs to.
func (c *connection) begin(ctx context.Context) (*use, error) {
	u := &use{of: c, token: From(ctx), from: ctx, ctx: ctx, cancel: func() {}}
	if c.database.number == "" {
		var err error
		u.ctx, u.lease, err = c.sentry.Own(ctx)
		return u, err
	}
	name := ""
	if u.token != nil {
		name = u.token.name
	}
	if name != c.request {
		c.release()
		// Somebody keeps a connection from one request to the next.
		if c.isDoubtful {
			return nil, driver.ErrBadConn
		}
	}
	if name == "" {
		return u, nil
	}
	if err := c.leaseFor(ctx, u.token); err != nil {
		return nil, err
	}
	if u.lease = c.lease; u.lease != nil {
		c.holds++
		u.shield()
	}
	return u, nil
}

func (c *connection) leaseFor(ctx context.Context, token *Token) error {
	if c.lease != nil {
		return token.Checkpoint()
	}
	// Within a transaction a question of ours might be the one too many.
	if c.number == 0 && !c.inTransaction && c.sentry.conversation() != nil {
		if err := c.learnNumber(ctx); err != nil {
			return err
		}
	}
	if c.number == 0 {
		c.sentry.unreachable.Add(1)
		return token.Checkpoint()
	}
	lease, err := c.sentry.Lease(ctx, c.database.name, c.number)
	if errors.Is(err, ErrTaken) {
		// No request is called so: nobody uses it any more, not even within a transaction.
		c.isDoubtful, c.request = true, "?"
		return driver.ErrBadConn
	}
	if err == nil && lease.isHeld() {
		c.lease, c.request = lease, token.name
	}
	return err
}

// release: if it is not answered as it should be, the connection still serves the request that it was leased to,
// within its transaction, and nobody else.
func (c *connection) release() {
	lease := c.lease
	if lease == nil {
		return
	}
	c.lease, c.holds = nil, 0
	if lease.Release() {
		c.request = ""
	} else {
		c.isDoubtful = true
	}
}

// shield gives the daemon its head start.
func (u *use) shield() {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(u.from))
	stop := context.AfterFunc(u.from, func() {
		if u.token.Reason() != "" {
			late := time.NewTimer(headStart)
			defer late.Stop()
			select {
			case <-late.C:
			case <-ctx.Done():
			case <-u.lease.conversation.over:
			}
		}
		cancel(context.Cause(u.from))
	})
	u.ctx, u.cancel = ctx, func() {
		stop()
		cancel(nil)
	}
}

// end says that the statement, or its rows, are done with. Twice is no harm.
func (u *use) end(err error) error {
	if u.hasEnded {
		return u.tells(err)
	}
	u.hasEnded = true
	u.cancel()
	c := u.of
	switch {
	case u.lease == nil:
	case c.database.number == "":
		u.lease.Release()
	case c.lease == u.lease:
		c.holds--
		// What a driver wants to be prepared first comes again at once, under the same lease.
		if c.holds == 0 && err != driver.ErrSkip {
			c.release()
		}
	}
	return u.tells(err)
}

// tells is the error of a request that is over, if a statement was cancelled because it is.
func (u *use) tells(err error) error {
	if err == nil || err == io.EOF || err == driver.ErrSkip || errors.Is(err, driver.ErrBadConn) || u.token == nil {
		return err
	}
	isOfContext := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if !isOfContext && !u.of.database.isCancelled(err) {
		return err
	}
	if over := u.token.Checkpoint(); over != nil {
		return over
	}
	// Its context says that it is: the daemon has told a query in this process.
	var over *Terminated
	if errors.As(context.Cause(u.ctx), &over) {
		return over
	}
	// The driver has only seen that its own context was cancelled.
	if isOfContext && u.from.Err() != nil {
		return u.from.Err()
	}
	return err
}
