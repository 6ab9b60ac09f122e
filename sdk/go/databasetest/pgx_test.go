package databasetest

// Tests of pgx without database/sql, and of its pool, with the tracer of bywashpgx.

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bywash "bywash.dev/go"
	"bywash.dev/go/bywashpgx"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// pgxShop is an application with a pool of leased connections.
type pgxShop struct {
	*shop
	pool *pgxpool.Pool
}

func openPgx(t *testing.T, settings ...string) pgxShop {
	t.Helper()
	d := start(t, kinds[0], settings...)
	return withPool(t, openAt(t, kinds[0], d, d.socket), 1, plainPool)
}

// plainPool returns a pool with the tracer and pgx's defaults.
func plainPool(config *pgxpool.Config, stopClient *bywash.StopClient) (*pgxpool.Pool, error) {
	tracer, err := bywashpgx.NewTracer(stopClient, "shop")
	if err != nil {
		return nil, err
	}
	config.ConnConfig.Tracer = tracer
	return pgxpool.NewWithConfig(context.Background(), config)
}

func withPool(
	t *testing.T, s *shop, size int32, made func(*pgxpool.Config, *bywash.StopClient) (*pgxpool.Pool, error),
) pgxShop {
	t.Helper()
	config, err := pgxpool.ParseConfig(postgresURL(s.kind.address(t)))
	must(t, err)
	config.MaxConns = size
	pool, err := made(config, s.stopClient)
	must(t, err)
	t.Cleanup(pool.Close)
	return pgxShop{s, pool}
}

// numberOf returns the number of the pool's connection, or of the given one.
func (s pgxShop) numberOf(ctx context.Context, on interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}) (number uint64) {
	s.t.Helper()
	check(s.t, on.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&number))
	return number
}

// waits returns whether the connection of this number runs a statement that waits.
func (s pgxShop) waits(number uint64) bool {
	return s.count(fmt.Sprintf(`SELECT count(*) FROM pg_stat_activity
		WHERE pid = %d AND state = 'active' AND wait_event_type IN ('Lock', 'Timeout')`, number)) == 1
}

// leavesDuring lets a client leave while its handler runs a statement that waits. It returns the
// number of the connection, and the statement's error.
func (s pgxShop) leavesDuring(t *testing.T, runs func(context.Context, *pgx.Conn) error) (uint64, error) {
	t.Helper()
	numbers, ended := make(chan uint64, 1), make(chan error, 1)
	server := s.serve(func(_ http.ResponseWriter, r *http.Request) {
		// The contexts of the handler end with the request.
		conn, err := s.pool.Acquire(r.Context())
		if err == nil {
			numbers <- uint64(conn.Conn().PgConn().PID())
			err = runs(r.Context(), conn.Conn())
			conn.Release()
		}
		is(t, bywash.Checkpoint(r.Context()), bywash.ClientLeft)
		ended <- err
	})
	leave := s.visit(server, "r1")
	number := begins(t, numbers, ended)
	until(t, "it waits", func() bool { return s.waits(number) })
	left := time.Now()
	leave()
	until(t, "it is cancelled in the database", func() bool { return !s.waits(number) })
	t.Logf("from the close to the end of the query: %v", time.Since(left))
	return number, begun{number, ended}.end(t)
}

// begins returns the number that a handler sends of its connection.
func begins(t *testing.T, numbers chan uint64, ended chan error) uint64 {
	t.Helper()
	select {
	case number := <-numbers:
		return number
	case err := <-ended:
		t.Fatal("it has no connection: ", err)
	case <-time.After(patience):
		t.Fatal("it does not begin")
	}
	return 0
}

// lock locks a table until the end of the test, and returns a function that unlocks it before.
func (s *shop) lock(table, mode string) (unlock func()) {
	s.t.Helper()
	locks, err := s.watch.Begin()
	must(s.t, err)
	s.t.Cleanup(func() { _ = locks.Rollback() })
	_, err = locks.Exec("LOCK TABLE " + table + " IN " + mode + " MODE")
	must(s.t, err)
	return func() { must(s.t, locks.Rollback()) }
}

const asleep = "SELECT pg_sleep($1)"

// pgxStatements has every kind of statement of pgx, as one that waits until it is cancelled. Some
// wait for a lock of their table.
var pgxStatements = []struct {
	name, lock string
	runs       func(ctx context.Context, conn *pgx.Conn, table string) error
}{
	{"Query", "", func(ctx context.Context, conn *pgx.Conn, _ string) error {
		rows, err := conn.Query(ctx, asleep, 20)
		if err == nil {
			rows.Next()
			err = rows.Err()
		}
		rows.Close()
		return err
	}},
	{"QueryRow", "", func(ctx context.Context, conn *pgx.Conn, _ string) error {
		var slept string
		return conn.QueryRow(ctx, asleep, 20).Scan(&slept)
	}},
	{"Exec by the simple protocol", "", func(ctx context.Context, conn *pgx.Conn, _ string) error {
		_, err := conn.Exec(ctx, asleep, pgx.QueryExecModeSimpleProtocol, 20.0)
		return err
	}},
	{"a prepared statement", "", func(ctx context.Context, conn *pgx.Conn, _ string) error {
		_, err := conn.Prepare(ctx, "sleep", asleep)
		if err == nil {
			_, err = conn.Exec(ctx, "sleep", 20)
		}
		return err
	}},
	{"Prepare", "ACCESS EXCLUSIVE", func(ctx context.Context, conn *pgx.Conn, table string) error {
		_, err := conn.Prepare(ctx, "read", "SELECT a FROM "+table)
		return err
	}},
	{"SendBatch", "", func(ctx context.Context, conn *pgx.Conn, _ string) error {
		batch := &pgx.Batch{}
		batch.Queue("SELECT 1")
		batch.Queue(asleep, 20)
		return conn.SendBatch(ctx, batch).Close()
	}},
	{"SendBatch with a transaction", "", func(ctx context.Context, conn *pgx.Conn, _ string) error {
		batch := &pgx.Batch{}
		batch.BeginTx(pgx.TxOptions{})
		batch.Queue(asleep, 20)
		results := conn.SendBatch(ctx, batch)
		return errors.Join(results.Close(), results.Tx().Rollback(ctx))
	}},
	{"CopyFrom", "SHARE", copyOne},
	{"the PREPARE of CopyFrom", "ACCESS EXCLUSIVE", copyOne},
	{"a query in a transaction", "", func(ctx context.Context, conn *pgx.Conn, _ string) error {
		return pgx.BeginFunc(ctx, conn, func(begun pgx.Tx) error {
			_, err := begun.Exec(ctx, asleep, 20)
			return err
		})
	}},
	{"a query in a nested transaction", "", func(ctx context.Context, conn *pgx.Conn, _ string) error {
		return pgx.BeginFunc(ctx, conn, func(begun pgx.Tx) error {
			return pgx.BeginFunc(ctx, begun, func(nested pgx.Tx) error {
				_, err := nested.Exec(ctx, asleep, 20)
				return err
			})
		})
	}},
}

func copyOne(ctx context.Context, conn *pgx.Conn, table string) error {
	_, err := conn.CopyFrom(ctx, pgx.Identifier{table}, []string{"a"}, pgx.CopyFromRows([][]any{{int32(1)}}))
	return err
}

func TestAClientWhoLeavesEndsAnyStatementOfPgxAndTheConnectionServesOthers(t *testing.T) {
	for _, statement := range pgxStatements {
		t.Run(statement.name, func(t *testing.T) {
			// Without this setting the daemon spares a COPY.
			s := openPgx(t, "writes = true")
			table := s.table("orders")
			if statement.lock != "" {
				s.lock(table, statement.lock)
			}
			number, err := s.leavesDuring(t, func(ctx context.Context, conn *pgx.Conn) error {
				return statement.runs(ctx, conn, table)
			})
			var cancelled *pgconn.PgError
			if !errors.As(err, &cancelled) || cancelled.Code != "57014" {
				t.Error(err)
			}
			if again := s.numberOf(context.Background(), s.pool); again != number {
				t.Error("the connection was closed, although its statement was cancelled")
			}
			if cancelled := s.daemon.number(`bywash_stopd_cancelled_total{database="shop"}`); cancelled != 1 {
				t.Errorf("the daemon has cancelled %v", cancelled)
			}
			if stats := s.stopClient.Stats(); s.daemon.number(leases) != 0 || stats.Doubtful != 0 || stats.Leased == 0 {
				t.Errorf("%+v", stats)
			}
		})
	}
}

func TestACopyThatTheDaemonSparesIsCancelledByPgx(t *testing.T) {
	d := start(t, kinds[0])
	s := withPool(t, openAt(t, kinds[0], d, d.socket), 1, newPool)
	table := s.table("orders")
	s.lock(table, "SHARE")
	number, err := s.leavesDuring(t, func(ctx context.Context, conn *pgx.Conn) error { return copyOne(ctx, conn, table) })
	if again := s.numberOf(context.Background(), s.pool); again != number || err == nil {
		t.Errorf("connection %d, then %d: %v", number, again, err)
	}
	if spared := d.number(`bywash_stopd_spared_total{database="shop",reason="writes"}`); spared != 1 {
		t.Errorf("the daemon has spared %v", spared)
	}
}

func TestNothingOfPgxBeginsForARequestThatIsOver(t *testing.T) {
	for name, stop := range map[string]func(pgxShop, *bywash.Token){
		"here":         func(_ pgxShop, token *bywash.Token) { token.Leave() },
		"by a gateway": func(s pgxShop, _ *bywash.Token) { s.daemon.voice().ask("STOP r1 client_left") },
	} {
		for _, statement := range pgxStatements {
			t.Run(name+"/"+statement.name, func(t *testing.T) {
				s := openPgx(t)
				table := s.table("orders")
				conn, err := s.pool.Acquire(context.Background())
				must(t, err)
				number := s.numberOf(context.Background(), conn)
				ctx, token := s.request("r1")
				stop(s, token)
				is(t, statement.runs(ctx, conn.Conn(), table), bywash.ClientLeft)
				// It does not wait for a connection of the pool either.
				ctx, cancel := context.WithTimeout(ctx, patience)
				defer cancel()
				stopped := s.stopClient.Stats().Stopped
				_, err = s.pool.Exec(ctx, "SELECT 1")
				is(t, err, bywash.ClientLeft)
				if s.stopClient.Stats().Stopped != stopped+1 {
					t.Error("it is not counted")
				}
				conn.Release()
				if again := s.numberOf(context.Background(), s.pool); again != number {
					t.Error("the connection was closed, although nothing was sent")
				}
				if stats := s.stopClient.Stats(); stats.Leased != 0 || stats.Stopped == 0 || stats.Doubtful != 0 {
					t.Errorf("%+v", stats)
				}
			})
		}
	}
}

func TestAQueryOfPgxThatTheGatewayStopsEndsItsRequest(t *testing.T) {
	s := openPgx(t)
	ctx, token := s.request("r1")
	number, ended := s.numberOf(ctx, s.pool), make(chan error, 1)
	go func() {
		_, err := s.pool.Exec(ctx, asleep, 20)
		ended <- err
	}()
	until(t, "it waits", func() bool { return s.waits(number) })
	if answer := s.daemon.voice().ask("STOP r1 deadline"); answer != "OK cancelled=1 spared=0" {
		t.Error(answer)
	}
	if err := (begun{number, ended}).end(t); err == nil {
		t.Error("it ran to its end")
	}
	if token.Reason() != bywash.Deadline {
		t.Error("the request goes on")
	}
}

func TestRowsOfPgxHoldTheLeaseUntilTheyAreClosed(t *testing.T) {
	s := openPgx(t)
	ctx, _ := s.request("r1")
	for name, leaves := range map[string]func(pgx.Rows){
		"closed": func(rows pgx.Rows) { rows.Close() }, "read to the end": func(rows pgx.Rows) { rows.Next() },
	} {
		rows, err := s.pool.Query(ctx, "SELECT 1")
		must(t, err)
		if !rows.Next() || s.daemon.number(leases) != 1 {
			t.Error("it is not leased while it is read")
		}
		leaves(rows)
		if s.daemon.number(leases) != 0 {
			t.Errorf("it is leased still: %s", name)
		}
	}
	// A connection that goes back with open rows is closed by its pool.
	conn, err := s.pool.Acquire(ctx)
	must(t, err)
	_, err = conn.Query(ctx, "SELECT 1")
	must(t, err)
	conn.Release()
	if s.daemon.number(leases) != 0 {
		t.Error("a closed connection is leased still")
	}
	// The source of a COPY looks at its lease; a COPY that fails has none left.
	conn, err = s.pool.Acquire(ctx)
	must(t, err)
	defer conn.Release()
	isSent := false
	source := pgx.CopyFromFunc(func() ([]any, error) {
		if isSent {
			return nil, nil
		}
		isSent = true
		if s.daemon.number(leases) != 1 {
			t.Error("a COPY is not leased")
		}
		return []any{int32(1)}, nil
	})
	_, err = conn.CopyFrom(ctx, pgx.Identifier{s.table("orders")}, []string{"a"}, source)
	check(t, err)
	if copyOne(ctx, conn.Conn(), "missing") == nil || s.daemon.number(leases) != 0 {
		t.Error("a COPY without a table is leased still")
	}
}

func TestATransactionOfPgxEndsAlthoughItsRequestIsOver(t *testing.T) {
	s := openPgx(t)
	table := s.table("orders")
	number := s.numberOf(context.Background(), s.pool)
	for round, ends := range map[int]func(pgx.Tx, context.Context) error{1: pgx.Tx.Commit, 10: pgx.Tx.Rollback} {
		ctx, token := s.request("r1")
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		begun, err := s.pool.Begin(ctx)
		must(t, err)
		_, err = begun.Exec(ctx, fmt.Sprintf("INSERT INTO %s VALUES (%d)", table, round))
		must(t, err)
		if s.daemon.number(leases) != 0 {
			t.Error("a transaction is leased between its statements")
		}
		token.Leave()
		cancel()
		_, err = begun.Exec(ctx, "INSERT INTO "+table+" VALUES (100)")
		is(t, err, bywash.ClientLeft)
		check(t, ends(begun, ctx))
		if again := s.numberOf(context.Background(), s.pool); again != number {
			t.Error("the connection was closed")
		}
	}
	if sum := s.count("SELECT SUM(a) FROM " + table); sum != 1 {
		t.Errorf("%d, not 1", sum)
	}
}

func TestAConnectionOfPgxThatAnotherHasLeasedIsClosed(t *testing.T) {
	s := openPgx(t)
	ctx, _ := s.request("r1")
	conn, err := s.pool.Acquire(ctx)
	must(t, err)
	defer conn.Release()
	begun, err := conn.Begin(ctx)
	must(t, err)
	s.daemon.voice().ask(fmt.Sprintf("LEASE other shop %d", conn.Conn().PgConn().PID()))
	// The transaction does not go on either.
	if _, err := begun.Exec(ctx, "SELECT 1"); !errors.Is(err, bywash.ErrTaken) {
		t.Error(err)
	}
	if !conn.Conn().IsClosed() {
		t.Error("it is not closed")
	}
	conn.Release()
	_, err = s.pool.Exec(ctx, "SELECT 1")
	check(t, err)
	if stats := s.stopClient.Stats(); stats.Taken != 1 || stats.Leased != 1 {
		t.Errorf("%+v", stats)
	}
}

func TestWithoutADaemonPgxWorksAsEver(t *testing.T) {
	said := logs(t)
	s := withPool(t, openAt(t, kinds[0], nil, filepath.Join(t.TempDir(), "nobody")), 1, plainPool)
	ctx, _ := s.request("r1")
	number := s.numberOf(ctx, s.pool)
	for i := 0; i < 10; i++ {
		if again := s.numberOf(ctx, s.pool); again != number {
			t.Fatal("its connection was closed")
		}
	}
	if stats := s.stopClient.Stats(); stats.Unreachable != 11 || stats.Leased != 0 || stats.Doubtful != 0 {
		t.Errorf("%+v", stats)
	}
	if strings.Count(said.String(), "no stop daemon answers") != 1 {
		t.Error(said)
	}
}

func TestWithoutADaemonPgxClosesTheConnectionOfACancelledQueryUnlessItCancelsRequests(t *testing.T) {
	for _, statement := range pgxStatements {
		if statement.lock != "" {
			continue
		}
		t.Run(statement.name, func(t *testing.T) {
			s := openAt(t, kinds[0], nil, filepath.Join(t.TempDir(), "nobody"))
			isKept := func(by pgxShop) bool {
				number, err := by.leavesDuring(t, func(ctx context.Context, conn *pgx.Conn) error {
					return statement.runs(ctx, conn, "")
				})
				if err == nil {
					t.Error("it ran to its end")
				}
				return by.numberOf(context.Background(), by.pool) == number
			}
			if isKept(withPool(t, s, 1, plainPool)) {
				t.Error("pgx keeps the connection by itself")
			}
			if !isKept(withPool(t, s, 1, newPool)) {
				t.Error("the connection was closed")
			}
		})
	}
}

func TestADaemonThatDiesLeavesNoConnectionOfPgxThatSomethingIsAimedAt(t *testing.T) {
	s := openPgx(t)
	ctx, _ := s.request("r1")
	rows, err := s.pool.Query(ctx, "SELECT 1")
	must(t, err)
	number := uint64(rows.Conn().PgConn().PID())
	s.daemon.dies()
	rows.Close()
	if again := s.numberOf(ctx, s.pool); again == number {
		t.Error("the connection was lent again")
	}
	if stats := s.stopClient.Stats(); stats.Doubtful != 1 || stats.Leased != 1 {
		t.Errorf("%+v", stats)
	}
}

func TestATransactionOfPgxThatSomethingIsAimedAtEndsAndIsTheLastOfItsConnection(t *testing.T) {
	s := openPgx(t)
	table := s.table("orders")
	ctx, _ := s.request("r1")
	begun, err := s.pool.Begin(ctx)
	must(t, err)
	rows, err := begun.Query(ctx, "SELECT 1")
	must(t, err)
	s.daemon.dies()
	rows.Close()
	number := s.numberOf(ctx, begun)
	_, err = begun.Exec(ctx, "INSERT INTO "+table+" VALUES (1)")
	check(t, err)
	check(t, begun.Commit(ctx))
	if s.count("SELECT count(*) FROM "+table) != 1 {
		t.Error("it was not written")
	}
	if again := s.numberOf(ctx, s.pool); again == number {
		t.Error("the connection was lent again")
	}
}

func TestATracerNeedsANameOfADatabase(t *testing.T) {
	if _, err := bywashpgx.NewTracer(bywash.NewStopClient(""), "my shop"); err == nil {
		t.Error("it has none")
	}
}
