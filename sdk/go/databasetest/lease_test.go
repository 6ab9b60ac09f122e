package databasetest

// Tests of which query is cancelled and by which stop, and of what becomes of its connection and
// its handler.

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bywash "bywash.dev/go"
)

// begun is a running query: its connection, and its result.
type begun struct {
	number uint64
	ended  chan error
}

// begin starts a query on a connection of its own, and waits until the database reports that it
// runs.
func (s *shop) begin(ctx context.Context, query string, values ...any) begun {
	s.t.Helper()
	own, err := s.db.Conn(context.Background())
	must(s.t, err)
	b := begun{s.number(ctx, own), make(chan error, 1)}
	go func() {
		_, err := run(ctx, own, query, values...)
		b.ended <- errors.Join(err, own.Close())
	}()
	until(s.t, "it runs", func() bool { return s.works(b.number) })
	return b
}

func (b begun) end(t testing.TB) error {
	t.Helper()
	select {
	case err := <-b.ended:
		return err
	case <-time.After(patience):
		t.Fatal("it does not end")
		return nil
	}
}

func is(t testing.TB, err error, reason bywash.Reason) {
	t.Helper()
	var over *bywash.Terminated
	if !errors.As(err, &over) || over.Reason != reason {
		t.Errorf("%v, not %s", err, reason)
	}
}

func TestAClientWhoLeavesEndsItsQueryAndTheConnectionServesOthers(t *testing.T) {
	// With a gateway's name, and without one: in that case the middleware makes it.
	for _, name := range []string{"r1", ""} {
		t.Run("named "+name, func(t *testing.T) { aClientWhoLeavesEndsItsQuery(t, name, false) })
	}
	t.Run("in a transaction", func(t *testing.T) { aClientWhoLeavesEndsItsQuery(t, "r1", true) })
}

func aClientWhoLeavesEndsItsQuery(t *testing.T, name string, inTransaction bool) {
	withEach(t, func(t *testing.T, kind kind) {
		s := open(t, kind)
		s.db.SetMaxOpenConns(1)
		numbers, ended := make(chan uint64, 1), make(chan error, 1)
		server := s.serve(func(_ http.ResponseWriter, r *http.Request) {
			numbers <- s.number(r.Context(), s.db)
			err := s.long(r.Context(), inTransaction)
			// While rows are open, database/sql itself returns this error, without the cause.
			if err == context.Canceled {
				err = context.Cause(r.Context())
			}
			ended <- err
		})
		leave := s.visit(server, name)
		number := <-numbers
		until(t, "it runs", func() bool { return s.works(number) })
		leave()
		is(t, begun{number, ended}.end(t), bywash.ClientLeft)
		until(t, "it is cancelled in the database", func() bool { return !s.works(number) })
		if again := s.number(context.Background(), s.db); again != number {
			t.Errorf("connection %d was closed, although its query was cancelled", number)
		}
		if cancelled := s.daemon.number(`bywash_stopd_cancelled_total{database="shop"}`); cancelled != 1 {
			t.Errorf("the daemon has cancelled %v", cancelled)
		}
		// The stop is answered when the cancellation is done.
		until(t, "the stop is answered", func() bool { return s.stopClient.Stats().Stops == 1 })
		if stats := s.stopClient.Stats(); stats.Doubtful != 0 || stats.Leased != 2 {
			t.Errorf("%+v", stats)
		}
	})
}

// long runs a query that takes longer than any test waits, by itself or in a transaction.
func (s *shop) long(ctx context.Context, inTransaction bool) error {
	if !inTransaction {
		_, err := run(ctx, s.db, s.kind.long)
		return err
	}
	begun, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer begun.Rollback()
	_, err = run(ctx, begun, s.kind.long)
	return err
}

func TestAQueryThatTheGatewayStopsEndsItsRequest(t *testing.T) {
	withEach(t, func(t *testing.T, kind kind) {
		s := open(t, kind)
		ctx, token := s.request("r1")
		query := s.begin(ctx, kind.long)
		if answer := s.daemon.voice().ask("STOP r1 client_left"); answer != "OK cancelled=1 spared=0" {
			t.Error(answer)
		}
		is(t, query.end(t), bywash.ClientLeft)
		is(t, token.Checkpoint(), bywash.ClientLeft)
	})
}

func TestARequestThatWasStoppedBeforeItsQueryBeginsNone(t *testing.T) {
	withEach(t, func(t *testing.T, kind kind) {
		s := open(t, kind)
		table := s.table("orders")
		s.daemon.voice().ask("STOP r1 deadline")
		ctx, _ := s.request("r1")
		_, err := s.db.ExecContext(ctx, "INSERT INTO "+table+" VALUES (1)")
		is(t, err, bywash.Deadline)
		_, err = run(ctx, s.db, kind.longOf, 20)
		is(t, err, bywash.Deadline)
		if s.count("SELECT COUNT(*) FROM "+table) != 0 || s.daemon.number(leases) != 0 {
			t.Error("it has begun")
		}
	})
}

func TestARequestThatIsOverHereBeginsNoQueryEither(t *testing.T) {
	withEach(t, func(t *testing.T, kind kind) {
		s := open(t, kind)
		ctx, token := s.request("r1")
		_, err := run(ctx, s.db, "SELECT 1")
		check(t, err)
		token.Leave()
		_, err = run(ctx, s.db, "SELECT 1")
		is(t, err, bywash.ClientLeft)
		until(t, "the daemon has agreed", func() bool { return s.stopClient.Stats().Stops == 1 })
	})
}

func TestWhatWritesIsSpared(t *testing.T) {
	withEach(t, func(t *testing.T, kind kind) {
		s := open(t, kind)
		table := s.table("orders")
		ctx, _ := s.request("r1")
		query := s.begin(ctx, fmt.Sprintf(kind.write, table))
		if answer := s.daemon.voice().ask("STOP r1 client_left"); answer != "OK cancelled=0 spared=1" {
			t.Error(answer)
		}
		check(t, query.end(t))
		if s.count("SELECT COUNT(*) FROM "+table) != 1 {
			t.Error("it was not written")
		}
	})
}

func TestNothingIsLeasedOnceTerminationIsCancelled(t *testing.T) {
	withEach(t, func(t *testing.T, kind kind) {
		s := open(t, kind)
		ctx, token := s.request("r1")
		must(t, token.CancelTermination())
		_, err := run(ctx, s.db, "SELECT 1")
		check(t, err)
		s.daemon.voice().ask("STOP r1 client_left")
		_, err = run(ctx, s.db, "SELECT 1")
		check(t, err)
		if leased := s.stopClient.Stats().Leased; leased != 0 {
			t.Errorf("%d leases", leased)
		}
	})
}

func TestRowsHoldTheLeaseUntilTheyAreClosed(t *testing.T) {
	withEach(t, func(t *testing.T, kind kind) {
		s := open(t, kind)
		ctx, _ := s.request("r1")
		rows, err := s.db.QueryContext(ctx, "SELECT 1 UNION SELECT 2")
		must(t, err)
		if !rows.Next() || s.daemon.number(leases) != 1 {
			t.Error("it is not leased while it is read")
		}
		check(t, rows.Close())
		if s.daemon.number(leases) != 0 {
			t.Error("it is leased still")
		}
		rows, err = s.db.QueryContext(ctx, "SELECT 1 UNION SELECT 2")
		must(t, err)
		_, err = drain(rows)
		check(t, err)
		if s.daemon.number(leases) != 0 || s.stopClient.Stats().Leased != 2 {
			t.Error("what is read to its end is leased still")
		}
	})
}

func TestRowsThatStillComeAreCancelled(t *testing.T) {
	withEach(t, func(t *testing.T, kind kind) {
		s := open(t, kind)
		ctx, token := s.request("r1")
		query := s.begin(ctx, kind.rowsThenLong)
		token.Leave()
		is(t, query.end(t), bywash.ClientLeft)
		until(t, "it is cancelled", func() bool { return !s.works(query.number) })
	})
}

func TestAStatementOfATransactionIsCancelledAndItsCommitIsNot(t *testing.T) {
	withEach(t, func(t *testing.T, kind kind) {
		s := open(t, kind)
		table := s.table("orders")
		ctx, token := s.request("r1")
		begun, err := s.db.BeginTx(ctx, nil)
		must(t, err)
		_, err = begun.ExecContext(ctx, "INSERT INTO "+table+" VALUES (1)")
		must(t, err)
		if s.daemon.number(leases) != 0 {
			t.Error("a transaction is leased between its statements")
		}
		s.daemon.voice().ask("STOP r1 client_left")
		_, err = begun.ExecContext(ctx, "INSERT INTO "+table+" VALUES (2)")
		is(t, err, bywash.ClientLeft)
		is(t, token.CancelTermination(), bywash.ClientLeft)
		check(t, begun.Commit())
		if count := s.count("SELECT COUNT(*) FROM " + table); count != 1 {
			t.Errorf("%d rows", count)
		}
		ctx, token = s.request("r2")
		begun, err = s.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
		must(t, err)
		number, ended := s.number(ctx, begun), make(chan error, 1)
		go func() {
			_, err := run(ctx, begun, kind.long)
			ended <- err
		}()
		until(t, "it runs", func() bool { return s.works(number) })
		token.Leave()
		is(t, <-ended, bywash.ClientLeft)
		check(t, begun.Rollback())
	})
}

// The transaction is begun and ended by texts, on a sql.Conn.
func TestATransactionOfARequestThatIsOverIsRolledBackByAText(t *testing.T) {
	withEach(t, func(t *testing.T, kind kind) {
		s := open(t, kind)
		s.db.SetMaxOpenConns(1)
		table := s.table("orders")
		// An open transaction would keep the table locked.
		defer s.db.Close()
		ctx, _ := s.request("r1")
		own, err := s.db.Conn(context.Background())
		must(t, err)
		for _, text := range []string{"BEGIN", "INSERT INTO " + table + " VALUES (1)"} {
			_, err = own.ExecContext(ctx, text)
			must(t, err)
		}
		s.daemon.voice().ask("STOP r1 client_left")
		_, err = own.ExecContext(ctx, "INSERT INTO "+table+" VALUES (2)")
		is(t, err, bywash.ClientLeft)
		_, err = own.ExecContext(ctx, "ROLLBACK")
		check(t, err)
		check(t, own.Close())
		// The next use of this connection is outside of the transaction: its write is visible to
		// all.
		_, err = s.db.Exec("INSERT INTO " + table + " VALUES (3)")
		check(t, err)
		if sum := s.count("SELECT SUM(a) FROM " + table); sum != 3 {
			t.Errorf("%d, not 3", sum)
		}
	})
}

func TestAPreparedStatementIsLeasedEachTimeItRuns(t *testing.T) {
	withEach(t, func(t *testing.T, kind kind) {
		s := open(t, kind)
		s.db.SetMaxOpenConns(1)
		prepared, err := s.db.Prepare(kind.longOf)
		must(t, err)
		defer prepared.Close()
		for _, name := range []string{"r1", "r2"} {
			ctx, token := s.request(name)
			number, ended := s.number(ctx, s.db), make(chan error, 1)
			go func() {
				rows, err := prepared.QueryContext(ctx, 20)
				if err == nil {
					_, err = drain(rows)
				}
				ended <- err
			}()
			until(t, "it runs", func() bool { return s.works(number) })
			token.Leave()
			is(t, begun{number, ended}.end(t), bywash.ClientLeft)
		}
		rows, err := prepared.Query(0)
		must(t, err)
		_, err = drain(rows)
		check(t, err)
	})
}

func TestAQueryWithArgumentsIsLeasedOnce(t *testing.T) {
	withEach(t, func(t *testing.T, kind kind) {
		s := open(t, kind)
		ctx, token := s.request("r1")
		_, err := run(ctx, s.db, kind.longOf, 0)
		check(t, err)
		if stats := s.stopClient.Stats(); stats.Leased != 1 || s.daemon.number(leases) != 0 {
			t.Errorf("%+v", stats)
		}
		query := s.begin(ctx, kind.longOf, 20)
		token.Leave()
		is(t, query.end(t), bywash.ClientLeft)
	})
}

func TestAConnectionThatAnotherHasLeasedIsClosedAndTheQueryRunsElsewhere(t *testing.T) {
	withEach(t, func(t *testing.T, kind kind) {
		s := open(t, kind)
		s.db.SetMaxOpenConns(1)
		number := s.number(context.Background(), s.db)
		s.daemon.voice().ask(fmt.Sprintf("LEASE other shop %d", number))
		ctx, _ := s.request("r1")
		if elsewhere := s.number(ctx, s.db); elsewhere == number {
			t.Error("it is not closed")
		}
		if stats := s.stopClient.Stats(); stats.Taken != 1 || stats.Leased != 1 {
			t.Errorf("%+v", stats)
		}
	})
}

func TestAQueryOutsideOfARequestIsCountedAndTheFirstIsLogged(t *testing.T) {
	withEach(t, func(t *testing.T, kind kind) {
		s, said := open(t, kind), logs(t)
		// Some drivers want a query with an argument prepared first.
		for i := 0; i < 2; i++ {
			_, err := run(context.Background(), s.db, kind.longOf, 0)
			check(t, err)
			_, err = s.db.ExecContext(context.Background(), "SELECT 1")
			check(t, err)
		}
		if stats := s.stopClient.Stats(); stats.Unnamed != 4 || stats.Leased != 0 {
			t.Errorf("%+v", stats)
		}
		if strings.Count(said.String(), "outside of a named request") != 1 {
			t.Error(said)
		}
	})
}

func TestWithoutADaemonEverythingWorksAsEver(t *testing.T) {
	withEach(t, func(t *testing.T, kind kind) {
		said := logs(t)
		s := openAt(t, kind, nil, filepath.Join(t.TempDir(), "nobody"))
		s.db.SetMaxOpenConns(1)
		ctx, _ := s.request("r1")
		number := s.number(ctx, s.db)
		for i := 0; i < 10; i++ {
			if again := s.number(ctx, s.db); again != number {
				t.Fatal("its connection was closed")
			}
		}
		if stats := s.stopClient.Stats(); stats.Unreachable != 11 || stats.Leased != 0 || stats.Doubtful != 0 {
			t.Errorf("%+v", stats)
		}
		if strings.Count(said.String(), "no stop daemon answers") != 1 {
			t.Error(said)
		}
	})
}

func TestADaemonThatDiesLeavesNoConnectionThatSomethingIsAimedAt(t *testing.T) {
	withEach(t, func(t *testing.T, kind kind) {
		s := open(t, kind)
		s.db.SetMaxOpenConns(1)
		ctx, _ := s.request("r1")
		rows, err := s.db.QueryContext(ctx, kind.number)
		must(t, err)
		if !rows.Next() {
			t.Fatal(rows.Err())
		}
		var number uint64
		must(t, rows.Scan(&number))
		s.daemon.dies()
		check(t, rows.Close())
		if again := s.number(ctx, s.db); again == number {
			t.Error("the connection was lent again")
		}
		if stats := s.stopClient.Stats(); stats.Doubtful != 1 || stats.Leased != 1 {
			t.Errorf("%+v", stats)
		}
	})
}
