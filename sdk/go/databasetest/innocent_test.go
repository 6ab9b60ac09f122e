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

	"github.com/jackc/pgx/v5"
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
		s.share(func(ctx context.Context) (int, error) { return run(ctx, s.db, query) })
	})
	t.Run("pgxpool", func(t *testing.T) {
		d := start(t, kinds[0])
		s := withPool(t, openAt(t, kinds[0], d, d.socket), connections, plainPool)
		s.share(func(ctx context.Context) (int, error) {
			rows, _ := s.pool.Query(ctx, asleep, 0.003)
			slept, err := pgx.CollectRows(rows, pgx.RowTo[any])
			if over := bywash.Checkpoint(ctx); err != nil && over != nil {
				err = over
			}
			return len(slept), err
		})
	})
}

// share lets requests run a query on the connections, and stops half of them.
func (s *shop) share(query func(context.Context) (int, error)) {
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
				// Some requests have no name and lease nothing, so the daemon does not know of them.
				ctx, _ := s.request(name)
				if round%4 == 1 {
					ctx = context.Background()
				}
				if count, err := query(ctx); err != nil || count == 0 {
					s.t.Errorf("%s, whom nobody has stopped: %v", name, err)
				}
			}
		}()
	}
	group.Wait()
	s.t.Logf("%d of %d were hit, %+v", hit.Load(), stopped.Load(), s.stopClient.Stats())
	if taken := s.stopClient.Stats().Taken; taken != 0 {
		s.t.Errorf("%d connections were lent while the daemon worked at them", taken)
	}
	if hit.Load() < stopped.Load()/10 {
		s.t.Error("hardly any was hit at all")
	}
}

// stopped runs a request that is stopped at a random moment, during its query or after it. It
// returns 1 if the query was cancelled, else 0.
func (s *shop) stopped(name string, query func(context.Context) (int, error), gateway *voice, chance *rand.Rand) int64 {
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
	_, err := query(ctx)
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
