package bywash

// The application's client of the stop daemon (bywash stopd): it tells the daemon which request
// uses which connection, and that a request shall be stopped. The contract is in sdk/README.md,
// "Down to the query".
//
// The daemon is optional. Without one, a lease costs one look at a clock, plus one attempt to
// connect every 200 ms.

import (
	"log"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// againAfter is the pause after a failed connection before the next attempt to connect.
	againAfter     = 200 * time.Millisecond
	usualSocket    = "/run/bywash-stopd/stopd.sock"
	socketVariable = "BYWASH_STOPD"
	// longestRefusal is how many characters of a refusal are logged.
	longestRefusal = 200
)

// StopClientStats has the counts of a StopClient since the start.
type StopClientStats struct {
	// Leased counts leased connections.
	Leased uint64
	// Stopped counts queries that did not begin because their request was over.
	Stopped uint64
	// Taken counts connections that another client of the daemon had leased as well.
	Taken uint64
	// Refused counts leases that the daemon refused for any other reason (for example an unknown
	// database name), and refused stops (for example because this user may not send them).
	Refused uint64
	// Unnamed counts queries outside of a named request, which nothing can stop. The middleware
	// names each request of a class.
	Unnamed uint64
	// Unreachable counts leases that were not requested, or not answered in time, because there was
	// no daemon.
	Unreachable uint64
	// Doubtful counts connections that must be closed, because a cancellation may be aimed at them.
	Doubtful uint64
	// Stops counts requests that the SDK told the daemon to stop, where it has agreed.
	Stops uint64
}

// StopClient is a client of the stop daemon; there is one for each process. It is safe for
// concurrent use.
type StopClient struct {
	socket  string
	current atomic.Pointer[conversation]
	// Held while a goroutine connects; the others wait for it.
	connecting sync.Mutex
	epoch      time.Time
	// The time, since the epoch, before which no attempt to connect is made.
	notBefore atomic.Int64
	// The number of the last lease of something in this process.
	numbers atomic.Uint64

	leased, stopped, taken, refused, unnamed, unreachable, doubtful, stops atomic.Uint64
	// Each of these is logged once.
	saysUnnamed, saysUnreachable, saysLeaseRefused, saysStopRefused sync.Once
}

// NewStopClient creates a client of the daemon at this socket; if it is empty, at that of
// BYWASH_STOPD or the default one. It does nothing before the first lease.
func NewStopClient(socket string) *StopClient {
	if socket == "" {
		socket = os.Getenv(socketVariable)
	}
	if socket == "" {
		socket = usualSocket
	}
	return &StopClient{socket: socket, epoch: time.Now()}
}

// Stats returns the counts.
func (s *StopClient) Stats() StopClientStats {
	return StopClientStats{
		s.leased.Load(), s.stopped.Load(), s.taken.Load(), s.refused.Load(), s.unnamed.Load(), s.unreachable.Load(),
		s.doubtful.Load(), s.stops.Load(),
	}
}

// isOutside counts a query outside of a named request.
func (s *StopClient) isOutside() {
	s.unnamed.Add(1)
	s.saysUnnamed.Do(func() {
		log.Print("bywash: a query runs outside of a named request, so nothing can stop it: check that the middleware is around " +
			"its handler, and that the request's context is passed on")
	})
}

// isUnreachable counts a query that the daemon does not know of.
func (s *StopClient) isUnreachable() {
	s.unreachable.Add(1)
	s.saysUnreachable.Do(func() {
		log.Printf("bywash: no stop daemon answers at %s: queries run, and nothing cancels them", s.socket)
	})
}

// isRefused counts a lease or a stop that the daemon refused. It logs the daemon's own text at the
// first lease and at the first stop, because the two have different causes. An answer STOPPED has no
// such text: it came too late, and nothing is wrong with the set-up.
func (s *StopClient) isRefused(what string, says *sync.Once, given answer) {
	if given.refusal != "" {
		says.Do(func() {
			log.Printf("bywash: the stop daemon at %s refuses a %s and answers %+.*q: nothing cancels the queries of such requests",
				s.socket, what, longestRefusal, given.refusal)
		})
	}
	s.refused.Add(1)
}

// Close ends the conversation with the daemon, and all leases with it. The client reconnects if it
// is needed again.
func (s *StopClient) Close() {
	if c := s.current.Load(); c != nil {
		c.end()
	}
}

// conversation returns the conversation with the daemon, connecting if necessary; nil if there is
// no daemon, or if the pause after a failure is not over.
func (s *StopClient) conversation() *conversation {
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

func (s *StopClient) isTooSoon() bool { return int64(time.Since(s.epoch)) < s.notBefore.Load() }

func (s *StopClient) rest() { s.notBefore.Store(int64(time.Since(s.epoch) + againAfter)) }

// stop tells the daemon that a request that has leased something is over. It does not block, not
// even until the line is sent, because the caller holds the lock of the class.
//
// Only the leases of this conversation are stopped (scope=own). Others may work under the same
// name, since Outgoing passes it on: for example the queries of a caller that has only stopped
// waiting for this service. The component that assigned the name stops all of them.
func (s *StopClient) stop(name string, reason Reason) {
	// Without a conversation there is no lease to stop.
	c, answered := s.current.Load(), make(chan answer, 1)
	if c != nil && c.say("STOP "+name+" "+string(reason)+" scope=own", answered) {
		go func() {
			c.send()
			s.hasStopped(c, answered)
		}()
	}
}

// hasStopped counts the result of a stop. A stop is answered when its cancellations are done,
// however long they take.
func (s *StopClient) hasStopped(c *conversation, answered <-chan answer) {
	select {
	case given := <-answered:
		if given.isDone {
			s.stops.Add(1)
		} else {
			s.isRefused("stop", &s.saysStopRefused, given)
		}
	case <-c.over:
	}
}
