package bywash

// The stop daemon (bywash sentry) as an application sees it: which request uses which connection, and that a
// request shall stop. The contract is in sdk/README.md, "Down to the query".
//
// It is never needed. Without a daemon a lease is one look at a clock, and one attempt to connect in 200 ms.

import (
	"log"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// againAfter is how long nobody tries to connect after that has failed.
	againAfter     = 200 * time.Millisecond
	usualSocket    = "/run/bywash-sentry/sentry.sock"
	socketVariable = "BYWASH_SENTRY"
)

// SentryStats is a sentry in numbers, since the start.
type SentryStats struct {
	// Leased connections.
	Leased uint64
	// Stopped: leases that did not begin, as their request was stopped.
	Stopped uint64
	// Taken: connections that another had leased as well.
	Taken uint64
	// Refused: leases that the daemon refused for any other reason, a name that it does not know for one; and stops
	// that it refused, as this user may not say them for one.
	Refused uint64
	// Unnamed: queries of no request that has a name; nothing can stop them. The middleware names each request of a
	// class.
	Unnamed uint64
	// Unreachable: leases that were not asked for, or not answered in time, as there was no daemon.
	Unreachable uint64
	// Doubtful: connections that are to be closed, as nobody knows what is aimed at them.
	Doubtful uint64
	// Stops: requests that the daemon was told to stop, and it has agreed.
	Stops uint64
}

// Sentry is one for each process. Every method may be called from every goroutine.
type Sentry struct {
	socket  string
	current atomic.Pointer[conversation]
	// Under this, one connects; the others wait for him.
	connecting sync.Mutex
	epoch      time.Time
	// Until then, since the epoch, nobody connects.
	notBefore atomic.Int64
	// Numbers of leases of one's own.
	numbers atomic.Uint64

	leased, stopped, taken, refused, unnamed, unreachable, doubtful, stops atomic.Uint64
	// What the log says once.
	saysUnnamed, saysUnreachable sync.Once
}

// NewSentry speaks to the daemon at this socket; if it is empty, at that of BYWASH_SENTRY or the usual one.
// Nothing is done before the first lease.
func NewSentry(socket string) *Sentry {
	if socket == "" {
		socket = os.Getenv(socketVariable)
	}
	if socket == "" {
		socket = usualSocket
	}
	return &Sentry{socket: socket, epoch: time.Now()}
}

// Stats is what it has done.
func (s *Sentry) Stats() SentryStats {
	return SentryStats{
		s.leased.Load(), s.stopped.Load(), s.taken.Load(), s.refused.Load(), s.unnamed.Load(), s.unreachable.Load(),
		s.doubtful.Load(), s.stops.Load(),
	}
}

// isOutside counts a query of no request that has a name.
func (s *Sentry) isOutside() {
	s.unnamed.Add(1)
	s.saysUnnamed.Do(func() {
		log.Print("bywash: a query runs outside of a named request, and nothing can stop it: is the middleware around " +
			"its handler, and its context passed on?")
	})
}

// isUnreachable counts a query of which the daemon is not told.
func (s *Sentry) isUnreachable() {
	s.unreachable.Add(1)
	s.saysUnreachable.Do(func() {
		log.Printf("bywash: no stop daemon answers at %s; queries run, and are not cancelled", s.socket)
	})
}

// Close ends the conversation with the daemon, and all leases with it. It is begun anew if it is needed.
func (s *Sentry) Close() {
	if c := s.current.Load(); c != nil {
		c.end()
	}
}

// conversation is the one with the daemon; nil if there is none, and not yet time to begin one.
func (s *Sentry) conversation() *conversation {
	if c := s.current.Load(); c != nil {
		return c
	}
	if s.isTooSoon() {
		return nil
	}
	s.connecting.Lock()
	defer s.connecting.Unlock()
	if c := s.current.Load(); c != nil || s.isTooSoon() {
		return c
	}
	stream, err := net.DialTimeout("unix", s.socket, answerWithin)
	if err != nil {
		s.rest()
		return nil
	}
	var c *conversation
	hasBegun := make(chan struct{})
	c = converse(stream, func() {
		<-hasBegun
		s.rest()
		s.current.CompareAndSwap(c, nil)
	})
	s.current.Store(c)
	close(hasBegun)
	return c
}

func (s *Sentry) isTooSoon() bool { return int64(time.Since(s.epoch)) < s.notBefore.Load() }

func (s *Sentry) rest() { s.notBefore.Store(int64(time.Since(s.epoch) + againAfter)) }

// stop tells the daemon that a request that has leased something is over. It does not wait, not even until it is
// sent: its caller holds the lock of the class.
//
// Only what was leased in this conversation is to stop (scope=own). Others may work under the same name, as Outgoing
// hands it on: the caller's own queries, for one, who has only stopped waiting for this service. Who gives the name
// stops all.
func (s *Sentry) stop(name string, reason Reason) {
	// Without a conversation there is no lease either.
	c, answered := s.current.Load(), make(chan answer, 1)
	if c != nil && c.say("STOP "+name+" "+string(reason)+" scope=own", answered) {
		go func() {
			c.send()
			s.hasStopped(c, answered)
		}()
	}
}

// hasStopped counts what became of a stop. It is answered when its cancellations are done, however long they take.
func (s *Sentry) hasStopped(c *conversation, answered <-chan answer) {
	select {
	case given := <-answered:
		if given.isDone {
			s.stops.Add(1)
		} else {
			s.refused.Add(1)
		}
	case <-c.over:
	}
}
