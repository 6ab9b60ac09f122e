package bywash

// The leases of one connection of any driver, while it works for requests.

import (
	"context"
	"errors"
)

// Connection leases one connection of a driver outside of database/sql to the requests that it works
// for. It is for authors of a wrapper around a driver, as in bywash.dev/go/bywashpgx. Like the
// connection itself, it is for one goroutine at a time.
type Connection struct {
	stopClient *StopClient
	database   *Database
	// The database's own number of the connection; 0 until it is known.
	number uint64
	// Asks the database for the number; nil if it was given.
	learn func(context.Context) error
	// The lease of the request that the connection works for, and how many of its statements and
	// rows are open.
	lease   *Lease
	holds   int
	request string
	// Whether the driver has refused to run the last statement without preparing it. The statement
	// comes again at once, and keeps its lease.
	isSkipped bool
	// A cancellation may be aimed at the request that the connection worked for last: it must be
	// closed.
	isDoubtful bool
}

// Connection returns the leases of a connection that has this number in its database.
func (s *StopClient) Connection(database Database, number uint64) (*Connection, error) {
	if err := database.check(); err != nil {
		return nil, err
	}
	return &Connection{stopClient: s, database: &database, number: number}, nil
}

// Begin leases the connection for a statement of the request that ctx belongs to. A text of
// transaction control (ROLLBACK, for example) is neither leased nor refused. If the error is a
// *Terminated, the request is over and the statement must not begin. If it is ErrTaken, close the
// connection.
func (c *Connection) Begin(ctx context.Context, text string) (*Use, error) {
	return c.begin(ctx, isControl(text))
}

// Release ends the lease if there is one, and returns whether the connection may serve another
// request. If it returns false, a cancellation may be aimed at the connection: close it. If the
// connection is in a transaction, close it after the transaction.
func (c *Connection) Release() bool {
	c.release()
	return !c.isDoubtful
}

func (c *Connection) begin(ctx context.Context, isControl bool) (*Use, error) {
	u := &Use{of: c, token: From(ctx), from: ctx, ctx: ctx, cancel: func() {}}
	if isControl {
		c.release()
		if u.token != nil {
			u.shield(controlTime)
		}
		return u, nil
	}
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
			return nil, ErrTaken
		}
	}
	if name == "" {
		if !c.isSkipped {
			c.stopClient.isOutside()
		}
		return u, nil
	}
	if err := c.leaseFor(ctx, u.token); err != nil {
		return nil, err
	}
	if u.lease = c.lease; u.lease != nil {
		c.holds++
		u.shield(headStart)
	}
	return u, nil
}

func (c *Connection) leaseFor(ctx context.Context, token *Token) error {
	if err := c.stopClient.Checkpoint(ctx); err != nil || c.lease != nil {
		return err
	}
	if c.number == 0 && c.learn != nil && c.stopClient.conversation() != nil {
		if err := c.learn(ctx); err != nil {
			return err
		}
	}
	if c.number == 0 {
		c.stopClient.isUnreachable()
		return nil
	}
	lease, err := c.stopClient.Lease(ctx, c.database.name, c.number)
	if errors.Is(err, ErrTaken) {
		// No request has this name, so the connection is not used again, not even within a
		// transaction.
		c.isDoubtful, c.request = true, "?"
		return err
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
func (c *Connection) release() {
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
