package databasetest

// An application with a database behind leases, and its requests.

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	bywash "bywash.dev/go"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/lib/pq"
)

// kind is a kind of database together with a driver for it.
type kind struct {
	name, variable, scheme string
	connector              func(address string) (driver.Connector, error)
	database               bywash.Database
	// The query for the number of a connection, and a query for whether the connection of a number
	// works.
	number, works string
	// A read that takes longer than any test waits; one with an argument; one that sends a row
	// before it takes as long; and a write to `table` that takes a moment.
	long, longOf, rowsThenLong, write string
}

var kinds = []kind{
	postgres("pgx", func(address string) (driver.Connector, error) {
		config, err := pgx.ParseConfig(postgresURL(address))
		if err != nil {
			return nil, err
		}
		return stdlib.GetConnector(*config), nil
	}),
	postgres("lib/pq", func(address string) (driver.Connector, error) {
		return pq.NewConnector(postgresURL(address))
	}),
	{
		name: "go-sql-driver/mysql", variable: "BYWASH_MARIADB", scheme: "mysql",
		connector: func(address string) (driver.Connector, error) {
			config := mysql.NewConfig()
			config.User, config.Passwd, config.Net, config.Addr, config.DBName = "shop", "lab", "tcp", address, "shop"
			return mysql.NewConnector(config)
		},
		database: bywash.MySQL("shop"), number: "SELECT CONNECTION_ID()",
		works: "SELECT COUNT(*) FROM information_schema.processlist WHERE id = %d AND command IN ('Query', 'Execute')",
		// An interrupted SLEEP returns 1 without an error; only the second one fails.
		long:         "SELECT SLEEP(20) FROM (SELECT 1 UNION SELECT 2) AS two",
		longOf:       "SELECT SLEEP(?) FROM (SELECT 1 UNION SELECT 2) AS two",
		rowsThenLong: "SELECT seq, REPEAT('x', 1000), IF(seq > 100, SLEEP(20), 0) FROM seq_1_to_200",
		write:        "INSERT INTO %s SELECT SLEEP(0.3)",
	},
}

func postgresURL(address string) string {
	return "postgres://shop:lab@" + address + "/shop?sslmode=disable"
}

func postgres(name string, connector func(string) (driver.Connector, error)) kind {
	return kind{
		name: name, variable: "BYWASH_POSTGRES", scheme: "postgres", connector: connector,
		database: bywash.Postgres("shop"), number: "SELECT pg_backend_pid()",
		works: "SELECT count(*) FROM pg_stat_activity WHERE pid = %d AND state = 'active'",
		long:  "SELECT pg_sleep(20)", longOf: "SELECT pg_sleep($1)",
		rowsThenLong: `SELECT n, repeat('x', 1000), CASE WHEN n > 100 THEN pg_sleep(20)::text END
			FROM generate_series(1, 200) AS n`,
		write: "INSERT INTO %s SELECT 1 FROM (SELECT pg_sleep(0.3)) AS slept",
	}
}

func (k kind) address(t testing.TB) string {
	address := os.Getenv(k.variable)
	if address == "" {
		t.Skip("NOT TESTED: " + k.variable + " is not set")
	}
	return address
}

func withEach(t *testing.T, test func(*testing.T, kind)) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) { test(t, kind) })
	}
}

// shop is an application: a controller, a stop client, and two handles of its database. One is
// leased, and the other observes.
type shop struct {
	t          testing.TB
	kind       kind
	daemon     *daemon
	controller *bywash.Controller
	stopClient *bywash.StopClient
	db, watch  *sql.DB
}

func open(t testing.TB, kind kind) *shop {
	t.Helper()
	d := start(t, kind)
	return openAt(t, kind, d, d.socket)
}

func openAt(t testing.TB, kind kind, d *daemon, socket string) *shop {
	t.Helper()
	controller, err := bywash.NewController(bywash.NewClass("search", time.Second, time.Hour))
	must(t, err)
	s := &shop{t: t, kind: kind, daemon: d, controller: controller, stopClient: bywash.NewStopClient(socket)}
	plain, err := kind.connector(kind.address(t))
	must(t, err)
	leased, err := s.stopClient.Connector(plain, kind.database)
	must(t, err)
	s.db, s.watch = sql.OpenDB(leased), sql.OpenDB(plain)
	t.Cleanup(func() {
		check(t, s.db.Close())
		check(t, s.watch.Close())
		s.stopClient.Close()
	})
	return s
}

// request begins a request with the name, and returns its context and its token.
func (s *shop) request(name string) (context.Context, *bywash.Token) {
	s.t.Helper()
	token, err := s.controller.Begin("search")
	must(s.t, err)
	token.Bring(http.Header{bywash.RequestHeader: {name}})
	s.t.Cleanup(token.End)
	return token.In(context.Background()), token
}

// logs returns where the log goes until the end of the test.
func logs(t *testing.T) *strings.Builder {
	text := &strings.Builder{}
	log.SetOutput(text)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	return text
}

type asked interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}

func (s *shop) number(ctx context.Context, of asked) (number uint64) {
	s.t.Helper()
	check(s.t, of.QueryRowContext(ctx, s.kind.number).Scan(&number))
	return number
}

func (s *shop) works(number uint64) bool {
	return s.count(fmt.Sprintf(s.kind.works, number)) == 1
}

func (s *shop) count(query string) (count int) {
	s.t.Helper()
	check(s.t, s.watch.QueryRow(query).Scan(&count))
	return count
}

// table creates a table with one column and a unique name. It returns the name.
func (s *shop) table(name string) string {
	name = fmt.Sprintf("%s_%d", name, time.Now().UnixNano())
	_, err := s.watch.Exec("CREATE TABLE " + name + " (a INT)")
	must(s.t, err)
	s.t.Cleanup(func() { _, _ = s.watch.Exec("DROP TABLE " + name) })
	return name
}

// run runs a query to its end and returns the number of its rows.
func run(ctx context.Context, on interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}, query string, values ...any) (int, error) {
	rows, err := on.QueryContext(ctx, query, values...)
	if err != nil {
		return 0, err
	}
	return drain(rows)
}

func drain(rows *sql.Rows) (int, error) {
	defer rows.Close()
	count := 0
	for rows.Next() {
		count++
	}
	return count, rows.Err()
}

// serve starts a server whose requests of this handler can be terminated. visit sends requests to
// it.
func (s *shop) serve(handle http.HandlerFunc) *httptest.Server {
	s.t.Helper()
	wrap, err := s.controller.Middleware("search")
	must(s.t, err)
	server := httptest.NewServer(wrap(handle))
	s.t.Cleanup(server.Close)
	return server
}

// visit sends a request with the name, and returns a function that makes the client leave. With an
// empty name, the request has no name.
func (s *shop) visit(server *httptest.Server, name string) context.CancelFunc {
	s.t.Helper()
	ctx, leave := context.WithCancel(context.Background())
	s.t.Cleanup(leave)
	request, err := http.NewRequestWithContext(ctx, "GET", server.URL, nil)
	must(s.t, err)
	if name != "" {
		request.Header.Set(bywash.RequestHeader, name)
	}
	go func() {
		if response, err := server.Client().Do(request); err == nil {
			response.Body.Close()
		}
	}()
	return leave
}
