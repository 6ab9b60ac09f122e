package databasetest

// Tests with services that work under one name, as Outgoing passes it on: a stop of one service
// ends only its own queries.

import (
	"testing"

	bywash "bywash.dev/go"
)

func TestARequestThatIsOverInOneServiceGoesOnInTheOther(t *testing.T) {
	withEach(t, func(t *testing.T, kind kind) {
		caller := open(t, kind)
		called := openAt(t, kind, caller.daemon, caller.daemon.socket)
		ctx, _ := caller.request("r1")
		goesOn := caller.begin(ctx, kind.longOf, 1.5)
		ctx, token := called.request(bywash.Outgoing(ctx).Get(bywash.RequestHeader))
		isOver := called.begin(ctx, kind.long)
		token.Leave()
		is(t, isOver.end(t), bywash.ClientLeft)
		until(t, "it is cancelled in the database", func() bool { return !called.works(isOver.number) })
		if !caller.works(goesOn.number) {
			t.Error("the caller's query was cancelled with it")
		}
		must(t, goesOn.end(t))
		// The stop is not remembered either: the caller begins another query.
		ctx, _ = caller.request("r1")
		_, err := run(ctx, caller.db, "SELECT 1")
		must(t, err)
		until(t, "the stop is answered", func() bool { return called.stopClient.Stats().Stops == 1 })
		if stats := caller.stopClient.Stats(); stats.Stops != 0 || stats.Stopped != 0 || stats.Doubtful != 0 {
			t.Errorf("%+v", stats)
		}
		// The component that assigned the name stops all.
		again, _ := called.request("r1")
		both := []begun{caller.begin(ctx, kind.long), called.begin(again, kind.long)}
		if answer := caller.daemon.voice().ask("STOP r1 client_left"); answer != "OK cancelled=2 spared=0" {
			t.Error(answer)
		}
		for _, query := range both {
			if query.end(t) == nil {
				t.Error("it ran to its end")
			}
		}
	})
}
