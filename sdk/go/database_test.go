package bywash

// Tests of the wrapper of database/sql, around drivers with few or many features. Tests with real
// ones: databasetest.

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// bare is a connection with the mandatory methods only. Rows of its queries are the number 7.
type bare struct{ closed *int }

func (p bare) Prepare(text string) (driver.Stmt, error) { return bareStatement{}, nil }
func (p bare) Begin() (driver.Tx, error)                { return p, nil }
func (p bare) Commit() error                            { return nil }
func (p bare) Rollback() error                          { return nil }
func (p bare) Close() error {
	*p.closed++
	return nil
}

type bareStatement struct{}

func (bareStatement) Close() error                               { return nil }
func (bareStatement) NumInput() int                              { return -1 }
func (bareStatement) Exec([]driver.Value) (driver.Result, error) { return driver.ResultNoRows, nil }
func (bareStatement) Query([]driver.Value) (driver.Rows, error)  { return &sevens{}, nil }

type sevens struct{ isRead bool }

func (*sevens) Columns() []string { return []string{"n"} }
func (*sevens) Close() error      { return nil }
func (s *sevens) Next(row []driver.Value) error {
	if s.isRead {
		return io.EOF
	}
	s.isRead, row[0] = true, int64(7)
	return nil
}

type queries struct{ bare }

func (queries) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return &sevens{}, nil
}

type oldExecs struct{ bare }

func (oldExecs) Exec(string, []driver.Value) (driver.Result, error) { return driver.ResultNoRows, nil }

type both struct {
	bare
	queries
	oldExecs
}

func (b both) Prepare(text string) (driver.Stmt, error) { return bareStatement{}, nil }
func (b both) Begin() (driver.Tx, error)                { return b.bare, nil }
func (b both) Close() error                             { return b.bare.Close() }

type converting struct{ bareStatement }

func (converting) ColumnConverter(int) driver.ValueConverter { return driver.DefaultParameterConverter }

type connects func() (driver.Conn, error)

func (c connects) Connect(context.Context) (driver.Conn, error) { return c() }
func (connects) Driver() driver.Driver                          { return nil }

func TestAConnectionRunsWithoutPreparingIfTheWrappedOneDoes(t *testing.T) {
	for _, scene := range []struct {
		wrapped        driver.Conn
		queries, execs bool
	}{{bare{}, false, false}, {queries{}, true, false}, {oldExecs{}, false, true}, {both{}, true, true}} {
		made := (&connection{wrapped: scene.wrapped}).asAble()
		_, queries := made.(driver.QueryerContext)
		_, execs := made.(driver.ExecerContext)
		if queries != scene.queries || execs != scene.execs {
			t.Errorf("%T", scene.wrapped)
		}
		for _, able := range []bool{can[driver.Pinger](made), can[driver.SessionResetter](made), can[driver.Validator](made),
			can[driver.NamedValueChecker](made), can[driver.ConnBeginTx](made), can[driver.ConnPrepareContext](made)} {
			if !able {
				t.Errorf("%T: %T", scene.wrapped, made)
			}
		}
	}
	if c := (&connection{}); can[driver.ColumnConverter](c.statement(bareStatement{}, false)) ||
		!can[driver.ColumnConverter](c.statement(converting{}, false)) {
		t.Error("a statement has a converter if the wrapped one has")
	}
}

func can[T any](value any) bool {
	_, ok := value.(T)
	return ok
}

// shop returns a database of such connections, leased from this fake daemon.
func shop(t *testing.T, d *desk, wrapped func(bare) driver.Conn) (db *sql.DB, closed *int) {
	t.Helper()
	closed = new(int)
	connector, err := NewStopClient(d.socket).Connector(connects(func() (driver.Conn, error) {
		return wrapped(bare{closed}), nil
	}), Postgres("shop"))
	must(t, err)
	db = sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db, closed
}

func TestEveryKindOfStatementIsLeasedOfEveryKindOfDriver(t *testing.T) {
	for name, wrapped := range map[string]func(bare) driver.Conn{
		"bare": func(p bare) driver.Conn { return p }, "queries": func(p bare) driver.Conn { return queries{p} },
		"execs": func(p bare) driver.Conn { return oldExecs{p} },
		"both":  func(p bare) driver.Conn { return both{p, queries{p}, oldExecs{p}} },
	} {
		d := open(t, agrees)
		db, closed := shop(t, d, wrapped)
		c, _ := search(t)
		ctx, _ := named(t, c, "r1")
		var number int
		must(t, db.QueryRowContext(ctx, "SELECT 7").Scan(&number))
		_, err := db.ExecContext(ctx, "UPDATE a")
		must(t, err)
		begun, err := db.BeginTx(ctx, nil)
		must(t, err)
		_, err = begun.ExecContext(ctx, "UPDATE a")
		must(t, err)
		must(t, begun.Commit())
		must(t, db.PingContext(ctx))
		if said := d.says(); strings.Count(said, "LEASE r1 shop 7; RELEASE r1 shop 7") != 3 || *closed != 0 {
			t.Error(name, said, *closed)
		}
		// Queries outside of a request are not leased.
		must(t, db.QueryRow("SELECT 7").Scan(&number))
		if said := d.says(); number != 7 || strings.Count(said, "LEASE") != 6 {
			t.Error(name, said, number)
		}
	}
}

func TestAConnectionIsClosedUnlessItsReleaseIsAnswered(t *testing.T) {
	d := open(t, func(words []string) []string {
		if words[0] == "RELEASE" {
			return []string{" ERR malformed what"}
		}
		return []string{" OK"}
	})
	db, closed := shop(t, d, func(p bare) driver.Conn { return queries{p} })
	c, _ := search(t)
	ctx, _ := named(t, c, "r1")
	rows, err := db.QueryContext(ctx, "SELECT 7")
	must(t, err)
	if *closed != 0 {
		t.Error("it is in use")
	}
	must(t, rows.Close())
	if *closed != 1 {
		t.Error("it was lent again")
	}
	// Within a transaction the connection still serves the request at which a cancellation may be
	// aimed, and no other.
	begun, err := db.BeginTx(ctx, nil)
	must(t, err)
	for i := 0; i < 2; i++ {
		_, err = begun.ExecContext(ctx, "UPDATE a")
		must(t, err)
	}
	other, _ := named(t, c, "r2")
	if _, err = begun.ExecContext(other, "UPDATE a"); !errors.Is(err, driver.ErrBadConn) {
		t.Error(err)
	}
	must(t, begun.Commit())
	if *closed != 2 {
		t.Error("it was lent again")
	}
}

// waits is a connection of a database in this process, whose queries wait until they are
// interrupted.
type waits struct{ bare }

func (waits) QueryContext(ctx context.Context, _ string, _ []driver.NamedValue) (driver.Rows, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestAQueryInThisProcessIsInterruptedWhenTheDaemonSaysSo(t *testing.T) {
	d := open(t, func(words []string) []string {
		if words[0] == "LEASE" {
			return []string{" OK", "0 STOPPED r1 client_left " + words[3]}
		}
		return []string{" OK"}
	})
	connector, err := NewStopClient(d.socket).Connector(connects(func() (driver.Conn, error) {
		return waits{bare{new(int)}}, nil
	}), InProcess())
	must(t, err)
	db := sql.OpenDB(connector)
	defer db.Close()
	c, _ := search(t)
	ctx, token := named(t, c, "r1")
	_, err = db.QueryContext(ctx, "SELECT 7")
	var over *Terminated
	if !errors.As(err, &over) || over.Reason != ClientLeft {
		t.Error(err)
	}
	ends(t, token, ClientLeft)
	if said := d.says(); said != "LEASE r1 self 1; RELEASE r1 self 1" {
		t.Error(said)
	}
}

type said struct{ state string }

func (s said) Error() string    { return "cancelled" }
func (s said) SQLState() string { return s.state }

type numbered struct{ Number uint16 }

func (numbered) Error() string { return "cancelled" }

func TestACancelledQueryIsTheErrorOfARequestThatIsOver(t *testing.T) {
	c, _ := search(t)
	ctx, goesOn := named(t, c, "r1")
	gone, left := named(t, c, "r2")
	left.Leave()
	postgres, mysql := Postgres("shop"), MySQL("shop")
	for _, scene := range []struct {
		database *Database
		err      error
		becomes  bool
	}{
		{&postgres, said{"57014"}, true}, {&postgres, fmt.Errorf("scan: %w", said{"57014"}), true},
		{&postgres, said{"23505"}, false}, {&postgres, numbered{1317}, false}, {&postgres, context.Canceled, true},
		{&mysql, &numbered{1317}, true}, {&mysql, numbered{1062}, false}, {&mysql, io.EOF, false},
		{&mysql, driver.ErrBadConn, false}, {&mysql, nil, false},
	} {
		of := &Connection{database: scene.database}
		if err := (&Use{of: of, token: goesOn, from: ctx, ctx: ctx}).mapError(scene.err); err != scene.err {
			t.Error(scene.err, "becomes", err, "of a request that goes on")
		}
		err := (&Use{of: of, token: left, from: gone, ctx: gone}).mapError(scene.err)
		var over *Terminated
		if errors.As(err, &over) != scene.becomes || !scene.becomes && err != scene.err {
			t.Error(scene.err, "becomes", err)
		}
	}
}

// The application has cancelled the request's context, or its own deadline has passed.
func TestTheContextOfADriverEndsAtOnceUnlessTheRequestIsOver(t *testing.T) {
	d := open(t, agrees)
	c, _ := search(t)
	ctx, token := named(t, c, "r1")
	expired, cancel := context.WithTimeout(ctx, 0)
	defer cancel()
	leases, err := NewStopClient(d.socket).Connection(Postgres("shop"), 7)
	must(t, err)
	// Another goroutine must not be what ends it.
	for i := 0; i < 100; i++ {
		for _, text := range []string{"UPDATE a", "COMMIT"} {
			use, err := leases.Begin(expired, text)
			must(t, err)
			if use.Context().Err() != context.DeadlineExceeded {
				t.Fatal(text, use.Context().Err())
			}
			must(t, use.End(nil))
		}
	}
	ctx, cancel = context.WithCancel(ctx)
	defer cancel()
	token.Leave()
	cancel()
	use, err := leases.Begin(ctx, "COMMIT")
	must(t, err)
	if use.Context().Err() != nil {
		t.Error("the COMMIT of a request that is over is not sent")
	}
	must(t, use.End(nil))
}

func TestADatabaseInThisProcessNeedsNoName(t *testing.T) {
	if _, err := NewStopClient("").Connector(nil, InProcess()); err != nil {
		t.Error(err)
	}
}
