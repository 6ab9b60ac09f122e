package bywash

// The use of a leased connection by one statement or its rows.
//
// If the context of a query is cancelled, a driver ends the query by closing the connection (which
// MariaDB does not notice). The daemon cancels only the query. So when a request is over, its
// driver learns of it after the daemon had time to act. The context that a driver gets here is
// cancelled together with the request's, but a moment later if the request is over and the daemon
// has been told. A connection whose query was cancelled in time goes back to its pool.

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
	// The request's context, and the driver's.
	from, ctx context.Context
	cancel    context.CancelFunc
	hasEnded  bool
}

// query runs a statement that returns rows. Statements that only control a transaction, or release
// locks, are not leased.
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

// exec does the same for a statement that returns no rows.
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
		u.ctx, u.lease, err = c.stopClient.Own(ctx)
		return u, err
	}
	name := ""
	if u.token != nil {
		name = u.token.name
	}
	if name != c.request {
		c.release()
		// The application keeps a connection from one request to the next.
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
	if err := c.stopClient.checkpoint(token); err != nil || c.lease != nil {
		return err
	}
	// Within a transaction, do not add a query of ours.
	if c.number == 0 && !c.inTransaction && c.stopClient.conversation() != nil {
		if err := c.learnNumber(ctx); err != nil {
			return err
		}
	}
	if c.number == 0 {
		c.stopClient.unreachable.Add(1)
		return nil
	}
	lease, err := c.stopClient.Lease(ctx, c.database.name, c.number)
	if errors.Is(err, ErrTaken) {
		// No request has this name, so the connection is not used again, not even within a
		// transaction.
		c.isDoubtful, c.request = true, "?"
		return driver.ErrBadConn
	}
	if err != nil {
		c.isDoubtful = !lease.Release() || c.isDoubtful
	} else if lease.isHeld() {
		c.lease, c.request = lease, token.name
	}
	return err
}

// release ends the lease. If the answer is not as it should be, the connection still serves the
// request that it was leased to, within its transaction, and no other request.
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

// end records that the statement or its rows are done with. Further calls only map the error.
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
		// A statement that the driver wants prepared first comes again at once, under the same
		// lease.
		if c.holds == 0 && err != driver.ErrSkip {
			c.release()
		}
	}
	return u.tells(err)
}

// tells returns the error of a request that is over, if a statement was cancelled because of that;
// else err.
func (u *use) tells(err error) error {
	if err == nil || err == io.EOF || err == driver.ErrSkip || errors.Is(err, driver.ErrBadConn) || u.token == nil {
		return err
	}
	isOfContext := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if !isOfContext && !u.of.database.isCancelled(err) {
		return err
	}
	over := u.token.Checkpoint()
	if over == nil && !isOfContext {
		over = u.asks()
	}
	if over != nil {
		return over
	}
	// The driver has only seen that its own context was cancelled.
	if isOfContext && u.from.Err() != nil {
		return u.from.Err()
	}
	return err
}

// asks asks the daemon by another lease whether the request of a cancelled query was stopped: a
// gateway may have told the daemon first. It returns a *Terminated, or nil if the request goes on.
func (u *use) asks() error {
	c := u.of
	if u.lease == nil || c.database.number == "" {
		return nil
	}
	if c.lease == u.lease && c.holds == 1 {
		// Its rows are still open, but no more of them come.
		c.release()
	}
	if c.lease != nil || c.isDoubtful {
		return nil
	}
	again := u.lease.again()
	given, err := again.ask(u.token)
	if err == nil && given.stopped != "" {
		return u.token.stopped(given.stopped)
	}
	if err == nil || err == errNoAnswer {
		again.isUnanswered = err != nil
		c.lease, c.request = again, again.request
		c.release()
	}
	return u.token.Checkpoint()
}
