package bywash

// A connection of any driver, leased while it works for a request.
//
// database/sql calls a connection and everything that belongs to it under one lock, so nothing here
// needs a lock of its own. It also finds out what a connection can do by the interfaces that it
// implements. If an answer here has the same effect as a missing interface, the method is always
// there (Ping, ResetSession, IsValid, CheckNamedValue, BeginTx, PrepareContext). If it has not (a
// connection that runs statements without preparing them), there is a type for each case.
//
// BEGIN, COMMIT and ROLLBACK are not leased, also not as texts (control.go): the statements of a
// transaction are leased.

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
)

type connection struct {
	wrapped       driver.Conn
	leases        Connection
	inTransaction bool
}

type (
	withQuery struct{ *connection }
	withExec  struct{ *connection }
	// The promoted methods of the connection come from the first field, at the shallower depth.
	withBoth struct {
		*connection
		withQuery
		withExec
	}
)

// asAble returns the connection with those optional interfaces for queries and other statements
// that the wrapped one has.
func (c *connection) asAble() driver.Conn {
	_, queries := c.wrapped.(driver.QueryerContext)
	_, execs := c.wrapped.(driver.ExecerContext)
	if _, old := c.wrapped.(driver.Queryer); old {
		queries = true
	}
	if _, old := c.wrapped.(driver.Execer); old {
		execs = true
	}
	switch {
	case queries && execs:
		return withBoth{c, withQuery{c}, withExec{c}}
	case queries:
		return withQuery{c}
	case execs:
		return withExec{c}
	}
	return c
}

func (c withQuery) QueryContext(ctx context.Context, text string, values []driver.NamedValue) (driver.Rows, error) {
	return c.query(ctx, isControl(text), func(ctx context.Context) (driver.Rows, error) {
		if able, ok := c.wrapped.(driver.QueryerContext); ok {
			return able.QueryContext(ctx, text, values)
		}
		plain, err := unnamed(ctx, values)
		if err != nil {
			return nil, err
		}
		return c.wrapped.(driver.Queryer).Query(text, plain)
	})
}

func (c withExec) ExecContext(ctx context.Context, text string, values []driver.NamedValue) (driver.Result, error) {
	return c.exec(ctx, isControl(text), func(ctx context.Context) (driver.Result, error) {
		if able, ok := c.wrapped.(driver.ExecerContext); ok {
			return able.ExecContext(ctx, text, values)
		}
		plain, err := unnamed(ctx, values)
		if err != nil {
			return nil, err
		}
		return c.wrapped.(driver.Execer).Exec(text, plain)
	})
}

// unnamed converts the parameters for a driver that supports neither names nor contexts, like
// database/sql. It returns an error if a parameter has a name.
func unnamed(ctx context.Context, values []driver.NamedValue) ([]driver.Value, error) {
	plain := make([]driver.Value, len(values))
	for i, value := range values {
		if value.Name != "" {
			return nil, errors.New("sql: driver does not support the use of Named Parameters")
		}
		plain[i] = value.Value
	}
	return plain, ctx.Err()
}

// Unwrap returns the driver's own connection, for sql.Conn.Raw. Statements on it are not leased.
func (c *connection) Unwrap() driver.Conn { return c.wrapped }

func (c *connection) Prepare(text string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), text)
}

func (c *connection) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	var prepared driver.Stmt
	var err error
	if able, ok := c.wrapped.(driver.ConnPrepareContext); ok {
		prepared, err = able.PrepareContext(ctx, text)
	} else if prepared, err = c.wrapped.Prepare(text); err == nil && ctx.Err() != nil {
		_ = prepared.Close()
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	return c.statement(prepared, isControl(text)), nil
}

func (c *connection) Close() error {
	c.leases.release()
	return c.wrapped.Close()
}

func (c *connection) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

func (c *connection) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	// The driver may use this context for the end of the transaction as well (pgx does).
	use, err := c.begin(ctx, true)
	if err != nil {
		return nil, err
	}
	begun, err := c.beginTx(use.ctx, options)
	if err != nil {
		return nil, use.End(err)
	}
	c.inTransaction = true
	return transaction{begun, c, use}, nil
}

func (c *connection) beginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if able, ok := c.wrapped.(driver.ConnBeginTx); ok {
		return able.BeginTx(ctx, options)
	}
	// The same checks as in database/sql, with its texts.
	if options.Isolation != 0 {
		return nil, errors.New("sql: driver does not support non-default isolation level")
	}
	if options.ReadOnly {
		return nil, errors.New("sql: driver does not support read-only transactions")
	}
	begun, err := c.wrapped.Begin()
	if err == nil && ctx.Err() != nil {
		_ = begun.Rollback()
		return nil, ctx.Err()
	}
	return begun, err
}

type transaction struct {
	driver.Tx
	of  *connection
	use *Use
}

func (t transaction) Commit() error {
	t.of.leaveTransaction()
	return t.use.End(t.Tx.Commit())
}

func (t transaction) Rollback() error {
	t.of.leaveTransaction()
	return t.use.End(t.Tx.Rollback())
}

// leaveTransaction releases the connection if it is still leased, so that no cancellation hits the
// commit.
func (c *connection) leaveTransaction() {
	c.inTransaction = false
	c.leases.release()
}

func (c *connection) Ping(ctx context.Context) error {
	if able, ok := c.wrapped.(driver.Pinger); ok {
		return able.Ping(ctx)
	}
	return nil
}

func (c *connection) ResetSession(ctx context.Context) error {
	if able, ok := c.wrapped.(driver.SessionResetter); ok {
		return able.ResetSession(ctx)
	}
	return nil
}

// IsValid returns whether the connection may go back to its pool, which calls this method. If it
// returns false, the pool closes the connection.
func (c *connection) IsValid() bool {
	isGood := c.leases.Release()
	if able, ok := c.wrapped.(driver.Validator); ok && !able.IsValid() {
		return false
	}
	return isGood
}

func (c *connection) CheckNamedValue(value *driver.NamedValue) error {
	if able, ok := c.wrapped.(driver.NamedValueChecker); ok {
		return able.CheckNamedValue(value)
	}
	return driver.ErrSkip
}

// query runs a statement that returns rows. Statements that only control a transaction, or release
// locks, are not leased.
func (c *connection) query(
	ctx context.Context, isControl bool, run func(context.Context) (driver.Rows, error),
) (driver.Rows, error) {
	use, err := c.begin(ctx, isControl)
	if err != nil {
		return nil, err
	}
	found, err := run(use.ctx)
	if err != nil {
		return nil, use.End(err)
	}
	return &rows{found, use}, nil
}

// exec does the same for a statement that returns no rows.
func (c *connection) exec(
	ctx context.Context, isControl bool, run func(context.Context) (driver.Result, error),
) (driver.Result, error) {
	use, err := c.begin(ctx, isControl)
	if err != nil {
		return nil, err
	}
	result, err := run(use.ctx)
	return result, use.End(err)
}

func (c *connection) begin(ctx context.Context, isControl bool) (*Use, error) {
	use, err := c.leases.begin(ctx, isControl)
	if errors.Is(err, ErrTaken) {
		return nil, driver.ErrBadConn
	}
	return use, err
}

// learnNumber asks the database for its number of this connection. Within a transaction it does
// nothing, since it must not add a query of ours.
func (c *connection) learnNumber(ctx context.Context) error {
	if c.inTransaction {
		return nil
	}
	found, closes, err := c.ask(ctx, c.leases.database.number)
	if err != nil {
		return err
	}
	defer closes()
	row := make([]driver.Value, len(found.Columns()))
	if err := found.Next(row); err != nil {
		return err
	}
	c.leases.number, err = whole(row)
	return err
}

func (c *connection) ask(ctx context.Context, question string) (driver.Rows, func(), error) {
	if able, ok := c.wrapped.(driver.QueryerContext); ok {
		found, err := able.QueryContext(ctx, question, nil)
		if err == nil {
			return found, func() { _ = found.Close() }, nil
		} else if err != driver.ErrSkip {
			return nil, nil, err
		}
	}
	prepared, err := c.wrapped.Prepare(question)
	if err != nil {
		return nil, nil, err
	}
	found, err := (&statement{wrapped: prepared}).queryWrapped(ctx, nil)
	if err != nil {
		_ = prepared.Close()
		return nil, nil, err
	}
	return found, func() { _, _ = found.Close(), prepared.Close() }, nil
}

// whole returns the number in a row of one column, in any of the types that drivers use.
func whole(row []driver.Value) (uint64, error) {
	if len(row) == 1 {
		switch number := row[0].(type) {
		case int64:
			return uint64(number), nil
		case uint64:
			return number, nil
		case []byte:
			return strconv.ParseUint(string(number), 10, 64)
		case string:
			return strconv.ParseUint(number, 10, 64)
		}
	}
	return 0, fmt.Errorf("bywash: the database returned %v instead of the number of its connection", row)
}
