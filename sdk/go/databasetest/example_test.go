package databasetest

// The example of ../README.md, word for word, and its test.

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	bywash "bywash.dev/go"
	"bywash.dev/go/bywashpgx"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
)

func newPool(config *pgxpool.Config, stopClient *bywash.StopClient) (*pgxpool.Pool, error) {
	tracer, err := bywashpgx.NewTracer(stopClient, "shop")
	if err != nil {
		return nil, err
	}
	config.ConnConfig.Tracer = tracer
	// If the daemon does not cancel a query, pgx does, and keeps its connection.
	config.ConnConfig.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: time.Second}
	}
	return pgxpool.NewWithConfig(context.Background(), config)
}

func countBooks(pool *pgxpool.Pool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var count int
		err := pool.QueryRow(r.Context(), "SELECT count(*) FROM books").Scan(&count)
		if bywash.Checkpoint(r.Context()) != nil {
			return // answered with 504
		} else if err != nil {
			http.Error(w, "no answer of the database", http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, count)
	}
}

func TestTheReadmeHasThisExample(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	must(t, err)
	source, err := os.ReadFile("example_test.go")
	must(t, err)
	_, example, _ := strings.Cut(string(source), "func newPool")
	example, _, _ = strings.Cut(example, "\n}\n\nfunc Test")
	if !strings.Contains(string(readme), "```go\nfunc newPool"+example+"\n}\n```") {
		t.Error("the README has another example")
	}
}

func TestTheExampleOfPgxAnswersWith504AndKeepsItsConnection(t *testing.T) {
	d := start(t, kinds[0])
	s := withPool(t, openAt(t, kinds[0], d, d.socket), 1, newPool)
	_, err := s.watch.Exec("CREATE TABLE books (a INT)")
	must(t, err)
	t.Cleanup(func() { _, _ = s.watch.Exec("DROP TABLE books") })
	number := s.numberOf(context.Background(), s.pool)
	// The lock ends before the server, which waits for its handlers.
	server := s.serve(countBooks(s.pool))
	unlock := s.lock("books", "ACCESS EXCLUSIVE")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ask := func(milliseconds string) string {
		request, err := http.NewRequestWithContext(ctx, "GET", server.URL, nil)
		must(t, err)
		request.Header.Set(bywash.Header, milliseconds)
		response, err := server.Client().Do(request)
		must(t, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		must(t, err)
		return fmt.Sprint(response.StatusCode, " ", string(body))
	}
	if said := ask("200"); !strings.HasPrefix(said, "504 ") {
		t.Error(said)
	}
	unlock()
	if said := ask("30000"); said != "200 0" {
		t.Error(said)
	}
	if again := s.numberOf(context.Background(), s.pool); again != number {
		t.Error("the connection was closed")
	}
}
