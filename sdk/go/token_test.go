package bywash

// Tests of the states of a token, on a clock that the test advances.

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

func goesOn(t *testing.T, token *Token) {
	t.Helper()
	if err := token.Checkpoint(); err != nil || token.IsTerminated() {
		t.Fatal(err)
	}
}

func TestACheckpointEndsWhoHasRunForAsLongAsItMay(t *testing.T) {
	c, clock := search(t)
	token := begin(t, c, never)
	clock.goes(9*second - 1)
	goesOn(t, token)
	if token.Left() != 1 {
		t.Fatal(token.Left())
	}
	clock.goes(1)
	ends(t, token, RanTooLong)
	ends(t, token, RanTooLong)
	if s := c.Stats()["search"]; s.Lost != 1 || s.Terminated != 1 {
		t.Fatalf("once: %+v", s)
	}
}

func TestToAskWhetherItIsOverChangesNothing(t *testing.T) {
	c, clock := search(t)
	served, told, short := begin(t, c, never), begin(t, c, never), begin(t, c, second)
	ctx, cancel := context.WithCancelCause(context.Background())
	served.cancel = cancel
	clock.goes(9 * second)
	for _, token := range []*Token{served, told, short} {
		if !token.IsTerminated() || !token.IsTerminated() || token.Reason() != "" {
			t.Fatal(token.Reason())
		}
	}
	if ctx.Err() != nil {
		t.Fatal("its context is cancelled")
	}
	// The request was done too late, but was never told.
	served.End()
	short.Settle()
	if served.IsTerminated() || short.IsTerminated() {
		t.Fatal("they were served")
	}
	if s := c.Stats()["search"]; s.Lost != 0 || s.Terminated != 0 || s.Deadline != 0 {
		t.Fatalf("%+v", s)
	}
	ends(t, told, RanTooLong)
}

func TestTheThresholdMayFallWhileItRuns(t *testing.T) {
	c, clock := search(t)
	clock.goes(5 * second)
	token := begin(t, c, never)
	load(t, c, 100, 100)
	if at := time.Duration(token.notBefore.Load()); at != 10*second {
		t.Fatal("it looks again at the end of the interval, not at", at)
	}
	clock.goes(5*second - 1)
	goesOn(t, token)
	clock.goes(1)
	ends(t, token, RanTooLong)
}

func TestTheThresholdMayRiseWhileItRuns(t *testing.T) {
	c, clock := search(t)
	load(t, c, 100, 100)
	clock.goes(19*second + second/2)
	token := begin(t, c, never)
	if token.Left() != second {
		t.Fatal(token.Left())
	}
	clock.goes(second)
	goesOn(t, token)
	if token.Left() != 8*second {
		t.Fatal(token.Left())
	}
}

func TestItsOwnDeadlineCanOnlyShorten(t *testing.T) {
	c, _ := search(t)
	for left, expected := range map[time.Duration]time.Duration{60 * second: 9 * second, second / 2: second / 2, 0: 0} {
		if is := begin(t, c, left).Left(); is != expected {
			t.Error(left, is)
		}
	}
}

func TestDeadlinesOfTheirOwnDoNotLowerTheThresholdOfOthers(t *testing.T) {
	c, clock := search(t)
	for i := 0; i < 100; i++ {
		ends(t, begin(t, c, 0), Deadline)
	}
	clock.goes(10 * second)
	is(t, c, 9*second)
	if s := c.Stats()["search"]; s.Lost != 0 || s.Deadline != 100 {
		t.Fatalf("%+v", s)
	}
}

func TestADeadlineCountsInPFromRunMinOn(t *testing.T) {
	c, clock := search(t)
	early, late := begin(t, c, second-1), begin(t, c, second)
	clock.goes(second - 1)
	ends(t, early, Deadline)
	clock.goes(1)
	ends(t, late, Deadline)
	if s := c.Stats()["search"]; s.Lost != 1 || s.Deadline != 2 || s.Arrived != 2 {
		t.Fatalf("%+v", s)
	}
	clock.goes(9 * second)
	is(t, c, second)
	if s := c.Stats()["search"]; s.P != 1 {
		t.Fatalf("the early one did not arrive: %+v", s)
	}
}

func TestWhoComesAndGoesWithinAnIntervalDidNotArriveInIt(t *testing.T) {
	c, clock := search(t)
	var before []*Token
	for i := 0; i < 20; i++ {
		before = append(before, begin(t, c, never))
	}
	clock.goes(10 * second)
	for _, token := range before[:10] {
		token.leave(ClientLeft)
	}
	load(t, c, 10, 1)
	for i := 0; i < 45; i++ {
		begin(t, c, never).leave(ClientLeft)
		ends(t, begin(t, c, 0), Deadline)
	}
	// A request is subtracted from the arrivals only once.
	token := begin(t, c, never)
	token.leave(ClientLeft)
	token.leave(ClientLeft)
	token.End()
	clock.goes(10 * second)
	if s := c.Stats()["search"]; s.P != 0.1 || s.Arrived != 121 || s.Lost != 1 {
		t.Fatalf("%+v", s)
	}
}

func TestWhoLeavesInTheLastTenthOfHisTimeHasComeToHisDeadline(t *testing.T) {
	c, clock := search(t)
	early, late, short := begin(t, c, 2*second), begin(t, c, 2*second), begin(t, c, second)
	begun, unbound := begin(t, c, 2*second), begin(t, c, never)
	begun.Settle()
	clock.goes(9 * second / 10)
	short.leave(ClientLeft)
	ends(t, short, Deadline)
	clock.goes(9*second/10 - 1)
	early.leave(ClientLeft)
	ends(t, early, ClientLeft)
	clock.goes(1)
	late.leave(ClientLeft)
	ends(t, late, Deadline)
	begun.leave(ClientLeft)
	ends(t, begun, ClientLeft)
	clock.goes(7 * second)
	unbound.leave(ClientLeft)
	ends(t, unbound, ClientLeft)
	if s := c.Stats()["search"]; s.Deadline != 2 || s.Lost != 1 || s.ClientLeft != 3 {
		t.Fatalf("%+v", s)
	}
}

func TestWhoeverLeftDoesNotCountAndWhoeverIsTerminatedDoes(t *testing.T) {
	c, clock := search(t)
	for i := 0; i < 100; i++ {
		token := begin(t, c, never)
		token.leave(ClientLeft)
		token.leave(ClientLeft)
		ends(t, token, ClientLeft)
	}
	clock.goes(10 * second)
	is(t, c, 9*second)
	for i := 0; i < 10; i++ {
		token := begin(t, c, never)
		clock.goes(9 * second / 10)
		defer ends(t, token, RanTooLong)
	}
	token := begin(t, c, never)
	clock.goes(second)
	is(t, c, 9*second)
	// An interval without arrivals has no losses.
	begin(t, c, never).End()
	clock.goes(8 * second)
	ends(t, token, RanTooLong)
	clock.goes(3 * second)
	is(t, c, second)
}

func TestAfterTheFirstByteOnlyAClientWhoLeavesEndsIt(t *testing.T) {
	c, clock := search(t)
	token := begin(t, c, second)
	token.Settle()
	clock.goes(100 * second)
	goesOn(t, token)
	if _, isBound := token.Deadline(); isBound || token.Left() != never {
		t.Fatal("it has a deadline")
	}
	token.leave(ClientLeft)
	ends(t, token, ClientLeft)
}

func TestWhoCancelsTerminationIsNotTerminatedByAnything(t *testing.T) {
	c, clock := search(t)
	token := begin(t, c, second)
	must(t, token.CancelTermination())
	must(t, token.CancelTermination())
	clock.goes(100 * second)
	token.leave(ClientLeft)
	goesOn(t, token)
	late := begin(t, c, never)
	clock.goes(9 * second)
	if late.CancelTermination() == nil {
		t.Fatal("it was too late")
	}
	if s := c.Stats()["search"]; s.Deferred != 1 || s.ClientLeft != 0 {
		t.Fatalf("%+v", s)
	}
}

func TestWhoeverHasEndedIsNotTerminatedAndEndsOnce(t *testing.T) {
	c, clock := search(t)
	token, left := begin(t, c, never), begin(t, c, never)
	left.leave(ClientLeft)
	for i := 0; i < 2; i++ {
		token.End()
		left.End()
	}
	clock.goes(100 * second)
	token.leave(ClientLeft)
	goesOn(t, token)
	// Other work for the request must still learn of its end.
	ends(t, left, ClientLeft)
	if s := c.Stats()["search"]; s.Running != 0 || s.ClientLeft != 1 {
		t.Fatalf("%+v", s)
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
