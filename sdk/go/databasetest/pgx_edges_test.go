package databasetest

// Tests of pgx with the tracer where a statement has no request, does not begin, has open rows next
// to it, waits for a notification, or comes from a hook of the pool.

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	bywash "bywash.dev/go"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestADeadlineOfTheApplicationEndsItsStatementsAsWithoutATracer(t *testing.T) {
	s := openPgx(t)
	table := s.table("orders")
	request, _ := s.request("r1")
	ctx, cancel := context.WithTimeout(request, 50*time.Millisecond)
	defer cancel()
	isLate := func(err error) {
		t.Helper()
		if !errors.Is(err, context.DeadlineExceeded) || !pgconn.Timeout(err) {
			t.Error(err)
		}
	}
	_, err := s.pool.Exec(ctx, asleep, 20)
	isLate(err)
	for i := 0; i < 10; i++ {
		begun, err := s.pool.Begin(request)
		must(t, err)
		_, err = begun.Exec(request, "INSERT INTO "+table+" VALUES (1)")
		check(t, err)
		_, err = begun.Exec(ctx, "INSERT INTO "+table+" VALUES (10)")
		isLate(err)
		isLate(begun.Commit(ctx))
	}
	if count := s.count("SELECT count(*) FROM " + table); count != 0 {
		t.Errorf("%d rows were written", count)
	}
}

// rewriter runs a function while pgx makes a statement ready.
type rewriter func(context.Context, *pgx.Conn) error

func (r rewriter) RewriteQuery(ctx context.Context, conn *pgx.Conn, text string, _ []any) (string, []any, error) {
	return text, nil, r(ctx, conn)
}

func TestAStatementThatEndsLeavesTheLeaseOfAnother(t *testing.T) {
	s := openPgx(t)
	ctx, _ := s.request("r1")
	acquired, err := s.pool.Acquire(ctx)
	must(t, err)
	defer acquired.Release()
	conn := acquired.Conn()
	isLeased := func() {
		t.Helper()
		if s.daemon.number(leases) != 1 {
			t.Error("it is not leased any more")
		}
	}
	batch := &pgx.Batch{}
	batch.Queue("SELECT 1", rewriter(func(context.Context, *pgx.Conn) error { return errors.New("it cannot begin") }))
	failed := conn.SendBatch(ctx, batch)
	rows, err := conn.Query(ctx, "SELECT 1")
	must(t, err)
	if failed.Close() == nil {
		t.Error("the batch has begun")
	}
	isLeased()
	if _, err := conn.Exec(ctx, "SELECT 1"); err == nil {
		t.Error("the connection is not busy")
	}
	isLeased()
	rows.Close()
	rows, err = conn.Query(ctx, "SELECT 1", rewriter(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SELECT 1")
		isLeased()
		return err
	}))
	must(t, err)
	rows.Close()
	if s.daemon.number(leases) != 0 {
		t.Error("it is leased still")
	}
}

func TestTheHooksOfAPoolDoNotWorkForARequest(t *testing.T) {
	d := start(t, kinds[0])
	s := openAt(t, kinds[0], d, d.socket)
	ctx, token := s.request("r1")
	ran := 0
	hook := func(ctx context.Context, conn *pgx.Conn) error {
		token.Leave()
		ran++
		_, err := conn.Prepare(ctx, "one", "SELECT 1")
		if err == nil {
			_, err = conn.Exec(ctx, "one")
		}
		return err
	}
	p := withPool(t, s, 1, func(config *pgxpool.Config, stopClient *bywash.StopClient) (*pgxpool.Pool, error) {
		config.AfterConnect = hook
		config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return true }
		config.PrepareConn = func(ctx context.Context, conn *pgx.Conn) (bool, error) {
			err := hook(ctx, conn)
			return err == nil, err
		}
		return plainPool(config, stopClient)
	})
	conn, err := p.pool.Acquire(ctx)
	must(t, err)
	conn.Release()
	if made := p.pool.Stat().NewConnsCount(); made != 1 || ran != 2 {
		t.Errorf("%d connections, %d hooks", made, ran)
	}
	if stats := s.stopClient.Stats(); stats != (bywash.StopClientStats{}) {
		t.Errorf("%+v", stats)
	}
}

func TestAWaitForANotificationEndsWithItsRequest(t *testing.T) {
	d := start(t, kinds[0])
	for name, made := range map[string]func(*pgxpool.Config, *bywash.StopClient) (*pgxpool.Pool, error){
		"pgx's defaults": plainPool, "the example": newPool,
	} {
		t.Run(name, func(t *testing.T) {
			aWaitForANotificationEnds(t, withPool(t, openAt(t, kinds[0], d, d.socket), 1, made))
		})
	}
}

func aWaitForANotificationEnds(t *testing.T, s pgxShop) {
	numbers, ended := make(chan uint64, 1), make(chan error, 1)
	waits := func(ctx context.Context) error {
		conn, err := s.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
		if _, err := conn.Exec(ctx, "LISTEN orders"); err != nil {
			return err
		}
		numbers <- uint64(conn.Conn().PgConn().PID())
		_, err = conn.Conn().WaitForNotification(ctx)
		return err
	}
	server := s.serve(func(_ http.ResponseWriter, r *http.Request) { ended <- waits(r.Context()) })
	leave := s.visit(server, "r1")
	number := begins(t, numbers, ended)
	until(t, "the database is idle", func() bool {
		return s.count(fmt.Sprintf("SELECT count(*) FROM pg_stat_activity WHERE pid = %d AND state = 'idle'", number)) == 1
	})
	if s.daemon.number(leases) != 0 {
		t.Error("it is leased, although nothing runs in the database")
	}
	leave()
	if err := (begun{number, ended}).end(t); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if again := s.numberOf(context.Background(), s.pool); again != number {
		t.Error("the connection was closed")
	}
}

func TestAStatementOfPgxOutsideOfARequestIsCountedAndTheFirstIsLogged(t *testing.T) {
	s, said := openPgx(t), logs(t)
	for i := 0; i < 2; i++ {
		_, err := s.pool.Exec(context.Background(), asleep, 0)
		check(t, err)
	}
	if stats := s.stopClient.Stats(); stats.Unnamed != 2 || strings.Count(said.String(), "outside of a named request") != 1 {
		t.Errorf("%+v: %s", stats, said)
	}
}
