package databasetest

// Tests of a stopped query while the daemon does not know yet whether its cancellation is over.

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"testing"

	bywash "bywash.dev/go"
)

// The test runs with MariaDB: the daemon prepares its query for PostgreSQL, so a proxy does not find
// it in a text.
func TestAStoppedQueryWhoseCancellationTakesLongFailsWithTheReason(t *testing.T) {
	kind := kinds[2]
	slow := kind
	slow.variable = "BYWASH_SLOW_TO_CANCEL"
	t.Setenv(slow.variable, slowToCancel(t, kind.address(t)))
	d := start(t, slow)
	s := openAt(t, kind, d, d.socket)
	s.db.SetMaxOpenConns(1)
	ctx, token := s.request("r1")
	query := s.begin(ctx, kind.long)
	// The daemon answers when the cancellation is over, which never happens.
	d.voice().say("STOP r1 deadline")
	is(t, query.end(t), bywash.Deadline)
	is(t, token.Checkpoint(), bywash.Deadline)
	if stats := s.stopClient.Stats(); stats.Doubtful != 1 {
		t.Errorf("the daemon has not refused the release: %+v", stats)
	}
	if again := s.number(context.Background(), s.db); again == query.number {
		t.Error("the connection was lent again")
	}
}

// slowToCancel starts a proxy of the database. It passes a KILL on, and holds the database's answer
// to it back. It returns the proxy's address.
func slowToCancel(t *testing.T, address string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			database, err := net.Dial("tcp", address)
			if err != nil {
				t.Error(err)
				return
			}
			var isHeld atomic.Bool
			go pass(client, database, func(text []byte) bool {
				isHeld.CompareAndSwap(false, bytes.Contains(text, []byte("KILL")))
				return true
			})
			go pass(database, client, func([]byte) bool { return !isHeld.Load() })
		}
	}()
	return listener.Addr().String()
}

// pass copies those pieces for which passes returns true, until one of the two streams ends.
func pass(from, to net.Conn, passes func([]byte) bool) {
	defer to.Close()
	piece := make([]byte, 1<<16)
	for {
		n, err := from.Read(piece)
		if n > 0 && passes(piece[:n]) {
			if _, err := to.Write(piece[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
