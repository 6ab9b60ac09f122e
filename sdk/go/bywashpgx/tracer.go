// Package bywashpgx leases connections of pgx (github.com/jackc/pgx/v5) without database/sql, also
// those of pgxpool: each query, batch, COPY and PREPARE of a request is leased from before it is
// sent until its rows are closed.
//
// It is a module of its own, since bywash.dev/go has no dependencies.
package bywashpgx

// pgx calls a tracer around each statement, and the application keeps the types of pgx. A tracer
// cannot return an error. So a statement that must not begin gets a context that is done, with the
// error as its Err. pgx looks at the context before it sends anything, and the connection stays open.
//
// pgx does not change the error of a query for a tracer. The error of a cancelled query is
// PostgreSQL's, and bywash.Checkpoint tells whether the request is over.

import (
	"context"
	"errors"
	"time"

	bywash "bywash.dev/go"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// connectionKey is where pgx keeps the leases of a connection (PgConn.CustomData).
	connectionKey = "bywash"
	// closeTime is how long closing the connection may take.
	closeTime = time.Second
)

// Tracer is the value of pgx.ConnConfig.Tracer that leases connections. It is safe for concurrent
// use. Package multitracer of pgx combines it with other tracers; a tracer that follows gets its
// contexts.
type Tracer struct {
	stopClient *bywash.StopClient
	database   bywash.Database
}

// NewTracer returns a tracer for connections to a database that the stop daemon knows by this name,
// [database.NAME].
func NewTracer(stopClient *bywash.StopClient, database string) (*Tracer, error) {
	t := &Tracer{stopClient, bywash.Postgres(database)}
	_, err := t.stopClient.Connection(t.database, 0)
	return t, err
}

// leases has the leases of a connection, and how many of its statements are open.
type leases struct {
	*bywash.Connection
	open int
}

// statementKey is the key of a statement in its context. Within Acquire of the pool the value is nil.
type statementKey struct{}

// statement is what the context of a statement carries from its begin to its end.
type statement struct {
	// Nil if the statement was refused.
	use *bywash.Use
	// Whether another client of the daemon has leased the connection.
	isTaken bool
	// Whether it is a COPY, or a PREPARE that is not part of another statement.
	isCopy, isPrepare bool
	hasEnded          bool
}

// refused is the context of a statement that must not begin.
type refused struct {
	context.Context
	err error
}

func (r refused) Err() error { return r.err }

var done = make(chan struct{})

func init() { close(done) }

func (refused) Done() <-chan struct{} { return done }

func (t *Tracer) leases(conn *pgx.Conn) *leases {
	kept := conn.PgConn().CustomData()
	found, _ := kept[connectionKey].(*leases)
	if found == nil {
		// Connection fails only for a wrong name of a database, and NewTracer has checked the name.
		made, _ := t.stopClient.Connection(t.database, uint64(conn.PgConn().PID()))
		found = &leases{Connection: made}
		kept[connectionKey] = found
	}
	return found
}

func (t *Tracer) begin(ctx context.Context, conn *pgx.Conn, text string, s statement) context.Context {
	if of, isKnown := ctx.Value(statementKey{}).(*statement); isKnown && of == nil {
		// It is a statement of the pool, which makes the connection ready for any request.
		return ctx
	}
	leases := t.leases(conn)
	use, err := leases.Begin(ctx, text)
	if err != nil {
		ctx, s.isTaken = refused{ctx, err}, errors.Is(err, bywash.ErrTaken)
	} else {
		leases.open++
		ctx, s.use = use.Context(), use
	}
	return context.WithValue(ctx, statementKey{}, &s)
}

func (t *Tracer) end(ctx context.Context, conn *pgx.Conn, err error) {
	s, _ := ctx.Value(statementKey{}).(*statement)
	// pgx ends a batch twice if it cannot begin.
	if s == nil || s.hasEnded {
		return
	}
	s.hasEnded = true
	leases := t.leases(conn)
	if s.use != nil {
		leases.open--
		// If the request was stopped by another process, its token learns of it here.
		_ = s.use.End(err)
	}
	if s.isTaken || leases.open == 0 && conn.PgConn().TxStatus() == 'I' {
		t.closeIfDoubtful(conn)
	}
}

func (t *Tracer) closeIfDoubtful(conn *pgx.Conn) {
	if !t.leases(conn).Release() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		// The connection is closed in any case.
		_ = conn.Close(ctx)
	}
}

// TraceQueryStart leases the connection for Query, QueryRow and Exec.
func (t *Tracer) TraceQueryStart(ctx context.Context, conn *pgx.Conn, start pgx.TraceQueryStartData) context.Context {
	return t.begin(ctx, conn, start.SQL, statement{})
}

// TraceQueryEnd ends the lease when the statement has ended and its rows are closed.
func (t *Tracer) TraceQueryEnd(ctx context.Context, conn *pgx.Conn, end pgx.TraceQueryEndData) {
	t.end(ctx, conn, end.Err)
}

// TraceBatchStart leases the connection for a batch as a whole.
func (t *Tracer) TraceBatchStart(ctx context.Context, conn *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return t.begin(ctx, conn, "", statement{})
}

// TraceBatchQuery does nothing: the batch goes on.
func (*Tracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd ends the lease when the results are closed.
func (t *Tracer) TraceBatchEnd(ctx context.Context, conn *pgx.Conn, end pgx.TraceBatchEndData) {
	t.end(ctx, conn, end.Err)
}

// TraceCopyFromStart leases the connection for a COPY.
func (t *Tracer) TraceCopyFromStart(ctx context.Context, conn *pgx.Conn, _ pgx.TraceCopyFromStartData) context.Context {
	return t.begin(ctx, conn, "", statement{isCopy: true})
}

// TraceCopyFromEnd ends the lease of a COPY.
func (t *Tracer) TraceCopyFromEnd(ctx context.Context, conn *pgx.Conn, end pgx.TraceCopyFromEndData) {
	t.end(ctx, conn, end.Err)
}

// TracePrepareStart leases the connection for a PREPARE, unless it is part of a leased statement.
func (t *Tracer) TracePrepareStart(ctx context.Context, conn *pgx.Conn, start pgx.TracePrepareStartData) context.Context {
	if ctx.Value(statementKey{}) != nil {
		return ctx
	}
	return t.begin(ctx, conn, start.SQL, statement{isPrepare: true})
}

// TracePrepareEnd ends the lease of a PREPARE. It also ends that of a COPY whose PREPARE failed,
// because pgx does not call TraceCopyFromEnd then.
func (t *Tracer) TracePrepareEnd(ctx context.Context, conn *pgx.Conn, end pgx.TracePrepareEndData) {
	s, _ := ctx.Value(statementKey{}).(*statement)
	if s != nil && (s.isPrepare || s.isCopy && end.Err != nil) {
		t.end(ctx, conn, end.Err)
	}
}

// TraceAcquireStart keeps a request that is over from waiting for a connection of the pool. Within
// Acquire, statements of the pool and of its hooks are not leased.
func (t *Tracer) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	if err := t.stopClient.Checkpoint(ctx); err != nil {
		return refused{ctx, err}
	}
	return context.WithValue(ctx, statementKey{}, (*statement)(nil))
}

// TraceAcquireEnd does nothing.
func (*Tracer) TraceAcquireEnd(context.Context, *pgxpool.Pool, pgxpool.TraceAcquireEndData) {}

// TraceRelease closes a connection that must not serve another request. The pool then replaces it.
func (t *Tracer) TraceRelease(_ *pgxpool.Pool, release pgxpool.TraceReleaseData) {
	t.closeIfDoubtful(release.Conn)
}
