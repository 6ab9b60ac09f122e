package bywash_test

// A test of a request outside of net/http, with the exported names only.

import (
	"errors"
	"testing"
	"time"

	bywash "bywash.dev/go"
)

func TestARequestOutsideOfNetHTTP(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	clock := func() time.Time { return now }
	c, err := bywash.NewControllerWithClock(clock, bywash.NewClass("search", time.Second, 9*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	begin := func(left time.Duration) *bywash.Token {
		token, err := c.BeginWithin("search", left)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	short, begun, left := begin(2*time.Second), begin(2*time.Second), begin(time.Minute)
	long, err := c.Begin("search")
	if err != nil {
		t.Fatal(err)
	}
	begun.Settle()
	left.Leave()
	now = now.Add(9 * time.Second)
	for token, reason := range map[*bywash.Token]bywash.Reason{
		short: bywash.Deadline, begun: "", left: bywash.ClientLeft, long: bywash.RanTooLong,
	} {
		var terminated *bywash.Terminated
		if err := token.Checkpoint(); errors.As(err, &terminated) != (reason != "") || token.Reason() != reason {
			t.Error(err, "not", reason)
		}
		token.End()
	}
	if s := c.Stats()["search"]; s.Arrived != 4 || s.Lost != 2 || s.ClientLeft != 1 || s.Running != 0 {
		t.Fatalf("%+v", s)
	}
	if _, err := c.BeginWithin("page", time.Second); err == nil {
		t.Error("it is not declared")
	}
}
