package databasetest

// Tests with requests that share a few connections, some of which are stopped at any moment: a
// cancellation never hits another request.

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	bywash "bywash.dev/go"
)

const (
	workers     = 6
	connections = 3
	rounds      = 120
)

func TestOfRequestsThatShareConnectionsOnlyTheStoppedOnesAreHit(t *testing.T) {
	withEach(t, func(t *testing.T, kind kind) {
		s := open(t, kind)
		s.db.SetMaxOpenConns(connections)
		s.db.SetMaxIdleConns(connections)
		query := strings.ReplaceAll(kind.long, "20", "0.003")
		var hit, stopped atomic.Int64
		var group sync.WaitGroup
		for worker := 0; worker < workers; worker++ {
			group.Add(1)
			go func() {
				defer group.Done()
				chance, gateway := rand.New(rand.NewSource(int64(worker))), s.daemon.voice()
				for round := 0; round < rounds; round++ {
					name := fmt.Sprintf("w%d-%d", worker, round)
					if round%2 == 0 {
						hit.Add(s.stopped(name, query, gateway, chance))
						stopped.Add(1)
						continue
					}
					// Some requests have no name and lease nothing, so the daemon does not know of
					// them.
					ctx, _ := s.request(name)
					if round%4 == 1 {
						ctx = context.Background()
					}
					if count, err := run(ctx, s.db, query); err != nil || count == 0 {
						t.Errorf("%s, whom nobody has stopped: %v", name, err)
					}
				}
			}()
		}
		group.Wait()
		t.Logf("%d of %d were hit, %+v", hit.Load(), stopped.Load(), s.stopClient.Stats())
		if taken := s.stopClient.Stats().Taken; taken != 0 {
			t.Errorf("%d connections were lent while the daemon worked at them", taken)
		}
		if hit.Load() < stopped.Load()/10 {
			t.Error("hardly any was hit at all")
		}
	})
}

// stopped runs a request that is stopped at a random moment, during its query or after it. It
// returns 1 if the query was cancelled, else 0.
func (s *shop) stopped(name, query string, gateway *voice, chance *rand.Rand) int64 {
	ctx, token := s.request(name)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Mostly at about the time at which the query ends.
	moment := time.Duration(1000+chance.Intn(4000)) * time.Microsecond
	byGateway := chance.Intn(2) == 0
	told := make(chan struct{})
	go func() {
		defer close(told)
		time.Sleep(moment)
		if byGateway {
			gateway.ask("STOP " + name + " client_left")
		} else {
			token.Leave()
			cancel()
		}
	}()
	_, err := run(ctx, s.db, query)
	<-told
	var over *bywash.Terminated
	if err == nil {
		return 0
	}
	if !byGateway && !errors.As(err, &over) && !errors.Is(err, context.Canceled) {
		s.t.Errorf("%s: %v", name, err)
	}
	return 1
}
