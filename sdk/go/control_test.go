package bywash

// Tests that texts that control a transaction reach the database, whatever has become of their
// request.

import (
	"context"
	"database/sql/driver"
	"errors"
	"testing"
)

// recordingConn is a fake connection that records the statements that it gets.
type recordingConn struct {
	queries
	texts *[]string
}

func (h recordingConn) ExecContext(_ context.Context, text string, _ []driver.NamedValue) (driver.Result, error) {
	*h.texts = append(*h.texts, text)
	return driver.ResultNoRows, nil
}

func TestARollbackAsATextReachesTheDatabaseAlthoughItsRequestIsOver(t *testing.T) {
	for name, kind := range map[string]struct {
		leave   func(*Token)
		answers string
	}{
		"here":          {(*Token).Leave, " OK"},
		"at the daemon": {func(*Token) {}, " STOPPED client_left"},
	} {
		var texts []string
		d := open(t, func(words []string) []string {
			if words[0] == "LEASE" {
				return []string{kind.answers}
			}
			return []string{" OK"}
		})
		db, closed := shop(t, d, func(p bare) driver.Conn { return recordingConn{queries{p}, &texts} })
		own, err := db.Conn(context.Background())
		must(t, err)
		c, _ := search(t)
		ctx, token := named(t, c, "r1")
		_, err = own.ExecContext(ctx, "BEGIN")
		must(t, err)
		kind.leave(token)
		_, err = own.ExecContext(ctx, "UPDATE a")
		var over *Terminated
		if !errors.As(err, &over) {
			t.Error(name, err)
		}
		_, err = own.ExecContext(ctx, " /* tidy */ rollback")
		must(t, err)
		prepared, err := own.PrepareContext(ctx, "UNLOCK TABLES")
		must(t, err)
		_, err = prepared.ExecContext(ctx)
		must(t, err)
		must(t, prepared.Close())
		must(t, own.Close())
		if len(texts) != 2 || texts[1] != " /* tidy */ rollback" || *closed != 0 {
			t.Errorf("%s: %q, %d closed", name, texts, *closed)
		}
	}
}

func TestWhatIsLeasedIsReleasedBeforeACommitAsAText(t *testing.T) {
	var texts []string
	d := open(t, agrees)
	db, _ := shop(t, d, func(p bare) driver.Conn { return recordingConn{queries{p}, &texts} })
	own, err := db.Conn(context.Background())
	must(t, err)
	c, _ := search(t)
	ctx, _ := named(t, c, "r1")
	rows, err := own.QueryContext(ctx, "SELECT 7")
	must(t, err)
	_, err = own.ExecContext(ctx, "COMMIT")
	must(t, err)
	if said := d.says(); said != "LEASE r1 shop 7; RELEASE r1 shop 7" {
		t.Error(said)
	}
	must(t, rows.Close())
	must(t, own.Close())
}
