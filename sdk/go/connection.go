package bywash

// A connection of any driver, leased while it works for a request.
//
// database/sql calls a connection and what belongs to it under one lock, so nothing here has a lock of its own. It
// also asks what a connection can do by the interfaces that it has. Where its own way to do without is the same as
// an answer here, the method is always there (Ping, ResetSession, IsValid, CheckNamedValue, BeginTx,
// PrepareContext); where it is not (a connection that runs statements without preparing them), there is a type for
// each case.
//
// BEGIN, COMMIT and ROLLBACK are not leased, also as texts (control.go): a transaction is leased by its statements.

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
)

type connection struct {
	wrapped  driver.Conn
	sentry   *Sentry
	database *Database
	// The database's own; 0 until it is known.
	number        uint64
	inTransaction bool
	// The request for which it works, and how many of its statements and rows are open. None are if it is about to
	// prepare what a driver would not run at once.
	lease   *Lease
	holds   int
	request string
	// Something may be under way that is aimed at the request that it worked for last: it is to be closed.
	isDoubtful bool
}

type (
	withQuery struct{ *connection }
	withExec  struct{ *connection }
	// The methods of the connection come from the first, as they are nearer there.
	withBoth struct {
		*connection
		withQuery
		withExec
	}
)

// asAble is the connection with the interfaces that the wrapped one has.
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

// unnamed is what database/sql does for a driver that knows neither names nor contexts.
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

// Unwrap is the driver's own connection, for sql.Conn.Raw. What is done with it there is not leased.
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
	c.release()
	return c.wrapped.Close()
}

func (c *connection) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

func (c *connection) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	begun, err := c.beginTx(ctx, options)
	if err != nil {
		return nil, err
	}
	c.inTransaction = true
	return transaction{begun, c}, nil
}

func (c *connection) beginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if able, ok := c.wrapped.(driver.ConnBeginTx); ok {
		return able.BeginTx(ctx, options)
	}
	// As database/sql does, in its words.
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
	of *connection
}

func (t transaction) Commit() error {
	t.of.leaveTransaction()
	return t.Tx.Commit()
}

func (t transaction) Rollback() error {
	t.of.leaveTransaction()
	return t.Tx.Rollback()
}

// leaveTransaction: whatever is still leased by then is not to be cancelled while it commits.
func (c *connection) leaveTransaction() {
	c.inTransaction = false
	c.release()
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

// IsValid is asked when the connection comes back to its pool: if it is not, it is closed.
func (c *connection) IsValid() bool {
	c.release()
	if able, ok := c.wrapped.(driver.Validator); ok && !able.IsValid() {
		return false
	}
	return !c.isDoubtful
}

func (c *connection) CheckNamedValue(value *driver.NamedValue) error {
	if able, ok := c.wrapped.(driver.NamedValueChecker); ok {
		return able.CheckNamedValue(value)
	}
	return driver.ErrSkip
}

// learnNumber asks the database which connection this is.
func (c *connection) learnNumber(ctx context.Context) error {
	found, closes, err := c.ask(ctx, c.database.number)
	if err != nil {
		return err
	}
	defer closes()
	row := make([]driver.Value, len(found.Columns()))
	if err := found.Next(row); err != nil {
		return err
	}
	c.number, err = whole(row)
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

// whole is the number in a row of one column, as drivers give numbers.
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
	return 0, fmt.Errorf("bywash: the number of a connection is %v", row)
}
