package bywash

// Tests of contexts and timers of a token, on a clock that the test advances. Its states:
// conformance_steps_test.go.

import (
	"context"
	"errors"
	"math/rand"
	"testing"
	"time"
)

func begin(t *testing.T, c *Controller, left time.Duration) *Token {
	t.Helper()
	g, err := c.of("search")
	must(t, err)
	return c.begin(g, left)
}

func ends(t *testing.T, token *Token, reason Reason) {
	t.Helper()
	err := token.Checkpoint()
	var terminated *Terminated
	if !errors.As(err, &terminated) || terminated.Reason != reason {
		t.Fatalf("%v, not %v", err, reason)
	}
	is := context.DeadlineExceeded
	if reason == ClientLeft {
		is = context.Canceled
	}
	if !errors.Is(err, is) || !token.IsTerminated() || token.Reason() != reason || token.Left() != 0 {
		t.Fatal(err, token.Reason(), token.Left())
	}
}

func TestToAskWhetherItIsOverCancelsNoContext(t *testing.T) {
	c, clock := search(t)
	token := begin(t, c, never)
	ctx, cancel := context.WithCancelCause(context.Background())
	token.cancel = cancel
	clock.goes(9 * second)
	if !token.IsTerminated() || ctx.Err() != nil {
		t.Fatal(ctx.Err())
	}
	ends(t, token, RanTooLong)
	if ctx.Err() == nil {
		t.Fatal("its context goes on")
	}
}

func TestItLooksAgainAtTheEndOfTheInterval(t *testing.T) {
	c, clock := search(t)
	clock.goes(5 * second)
	token := begin(t, c, never)
	if at := time.Duration(token.notBefore.Load()); at != 10*second {
		t.Fatal(at)
	}
}

func TestNoTimerStaysArmedWhenNoTimeEndsItAnyMore(t *testing.T) {
	for name, over := range map[string]func(*Token){"End": (*Token).End, "Settle": (*Token).Settle, "Leave": (*Token).Leave} {
		c, _ := search(t)
		token := begin(t, c, never)
		token.arm(func(error) {})
		timer := token.timer
		over(token)
		if timer.Stop() {
			t.Error(name)
		}
	}
}

func TestCodeThatWorksForNoRequestPassesItsCheckpoints(t *testing.T) {
	if From(context.Background()) != nil || Checkpoint(context.Background()) != nil {
		t.Fatal()
	}
}

// Compares with a reference that asks the controller at each step, for random loads.
func TestACheckpointIsNeverLateWhateverTheLoads(t *testing.T) {
	chance := rand.New(rand.NewSource(7))
	c, clock := search(t)
	var running []*Token
	for turn := 0; turn < 3000; turn++ {
		clock.goes([]time.Duration{second / 100, second / 3, 2 * second}[chance.Intn(3)])
		load(t, c, chance.Intn(14), 0)
		if chance.Float64() < 0.1 {
			load(t, c, 0, 1)
		}
		running = append(running, begin(t, c, []time.Duration{never, never, 3 * second}[chance.Intn(3)]))
		var still []*Token
		for _, token := range running {
			deadline, isBound := token.Deadline()
			isDue := isBound && !clock.now().Before(deadline)
			if err := token.Checkpoint(); (err != nil) != isDue {
				t.Fatalf("turn %d of seed 7: %v, due %v", turn, err, isDue)
			} else if err == nil && chance.Float64() >= 0.3 {
				still = append(still, token)
			}
		}
		running = still
	}
	if s := c.Stats()["search"]; s.Terminated < 30 || s.Deadline < 30 {
		t.Fatalf("too few to tell: %+v", s)
	}
}
