package bywash

// The token of one request, which says whether the request may go on.
//
// States: running, then one of settled (its response has begun), deferred (it asked not to be
// terminated) and terminated; from any of them ended. When its client leaves, a running or settled
// request is terminated, because its response will not be read. A deferred one goes on. The state
// changes under the mutex of the class, and never because the token is only read.
//
// notBefore makes a checkpoint cheap: before that moment nothing can terminate the request. A
// threshold changes only at the end of an interval and never falls below RunMin, so until then the
// clock alone decides. A timer has to look again at that moment as well.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// Reason is why a request was terminated. The names are the gateway's
// (crates/engine/src/reason.rs), except for Deadline, which only the application knows.
type Reason string

const (
	// RanTooLong says that the request had run for as long as its class allows.
	RanTooLong Reason = "ran_too_long"
	// ClientLeft says that the client closed the connection.
	ClientLeft Reason = "client_left"
	// Deadline says that the time that the caller allowed was over.
	Deadline Reason = "deadline"
)

// Terminated is the error of a request that is over: all work for it should stop. It wraps
// context.DeadlineExceeded, or context.Canceled if the client has left.
type Terminated struct {
	Class  string
	Reason Reason
	// RetryAfter is after how long the client may retry. It is only meaningful for RanTooLong,
	// since the other reasons say nothing about the load.
	RetryAfter time.Duration
}

func (t *Terminated) Error() string {
	return fmt.Sprintf("bywash: class %s: %s", t.Class, t.Reason)
}

// Unwrap returns the corresponding error of package context.
func (t *Terminated) Unwrap() error {
	if t.Reason == ClientLeft {
		return context.Canceled
	}
	return context.DeadlineExceeded
}

type state int

const (
	running state = iota
	settled
	deferred
	terminated
	ended
)

const never = time.Duration(math.MaxInt64)

// Token is the handle of one request. It is safe for concurrent use.
type Token struct {
	controller *Controller
	granted    *granted
	start      time.Duration
	// The end of the time that the caller allowed.
	own       time.Duration
	notBefore atomic.Int64
	// The fields that the request brought along and passes on.
	name, traceParent string
	traceState        []string
	// The following fields are guarded by the mutex of the class.
	state  state
	isOver bool
	reason Reason
	timer  *time.Timer
	cancel context.CancelCauseFunc
	// The stop clients that hold leases of this request; each is notified when the request is over.
	stopClients []*StopClient
}

// Begin begins a request outside of net/http now and returns its token. Call Settle, Leave and End
// as the request goes on.
func (c *Controller) Begin(class string) (*Token, error) { return c.BeginWithin(class, never) }

// BeginWithin is like Begin for a request whose caller allows it this much time.
func (c *Controller) BeginWithin(class string, left time.Duration) (*Token, error) {
	g, err := c.of(class)
	if err != nil {
		return nil, err
	}
	return c.begin(g, left), nil
}

func (c *Controller) begin(g *granted, left time.Duration) *Token {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	now := c.now()
	t := &Token{controller: c, granted: g, start: now, own: never}
	if left < never-now {
		t.own = now + left
	}
	g.arrives(now)
	g.totals.Running++
	t.lookAgain(now)
	return t
}

// Class returns the name of the request's class.
func (t *Token) Class() string { return t.granted.Name }

// Deadline returns when the request will be terminated at the present threshold; false if no time
// terminates it.
func (t *Token) Deadline() (time.Time, bool) {
	t.granted.mutex.Lock()
	defer t.granted.mutex.Unlock()
	if t.state != running && t.state != terminated {
		return time.Time{}, false
	}
	return t.controller.epoch.Add(t.due(t.controller.now())), true
}

// Left returns the time that is left at the present threshold: 0 if the request is over, the
// greatest Duration if the time is unlimited.
func (t *Token) Left() time.Duration {
	t.granted.mutex.Lock()
	defer t.granted.mutex.Unlock()
	switch now := t.controller.now(); t.state {
	case running:
		return max(t.due(now)-now, 0)
	case terminated:
		return 0
	default:
		return never
	}
}

// IsTerminated returns whether the request is over, also if it is overdue and its handler has not
// been notified yet. It changes nothing.
func (t *Token) IsTerminated() bool {
	t.granted.mutex.Lock()
	defer t.granted.mutex.Unlock()
	return t.reason != "" || t.overdue(t.controller.now()) != ""
}

// Reason returns why the request is over, once its handler has been notified; empty until then.
func (t *Token) Reason() Reason {
	t.granted.mutex.Lock()
	defer t.granted.mutex.Unlock()
	return t.reason
}

// Checkpoint returns a *Terminated if this request is over, else nil.
func (t *Token) Checkpoint() error {
	if int64(t.controller.now()) < t.notBefore.Load() {
		return nil
	}
	if t.look() != "" {
		return t.terminated()
	}
	return nil
}

// CancelTermination is the last checkpoint: if it returns nil, nothing terminates this request any
// more. Call it before a write, for example.
func (t *Token) CancelTermination() error {
	t.look()
	t.granted.mutex.Lock()
	defer t.granted.mutex.Unlock()
	switch t.state {
	case running, settled:
		t.state = deferred
		t.notBefore.Store(int64(never))
		t.granted.totals.Deferred++
	case terminated:
		return t.terminated()
	case deferred, ended:
	}
	return nil
}

// End records that all work for the request is over. Further calls have no effect.
func (t *Token) End() {
	t.granted.mutex.Lock()
	defer t.granted.mutex.Unlock()
	if t.isOver {
		return
	}
	t.isOver = true
	t.granted.totals.Running--
	t.disarm()
	t.cancel = nil
	// A terminated request keeps its state: other goroutines that still work for it must learn of
	// it.
	if t.state != terminated {
		t.state = ended
		t.notBefore.Store(int64(never))
	}
}

// Settle records that the first byte of the response is sent. From then on no time terminates the
// request.
func (t *Token) Settle() {
	t.granted.mutex.Lock()
	defer t.granted.mutex.Unlock()
	if t.state == running {
		t.state = settled
		t.notBefore.Store(int64(never))
		t.disarm()
	}
}

// Leave records that the client has left.
func (t *Token) Leave() { t.leave(ClientLeft) }

// leave records that no client waits for the response. A gateway closes the connection a moment
// before the deadline here. So a request whose client leaves in the last tenth of its time counts
// as ended by its deadline, unless its response has begun.
func (t *Token) leave(reason Reason) {
	t.granted.mutex.Lock()
	defer t.granted.mutex.Unlock()
	now := t.controller.now()
	if t.state == running && now >= t.own-(t.own-t.start)/10 {
		reason = Deadline
	}
	if t.state == running || t.state == settled {
		t.terminate(reason, now)
	}
}

// look terminates the request if it is overdue. It returns why the request is over, or "".
func (t *Token) look() Reason {
	t.granted.mutex.Lock()
	defer t.granted.mutex.Unlock()
	now := t.controller.now()
	if reason := t.overdue(now); reason != "" {
		t.terminate(reason, now)
	}
	return t.reason
}

// overdue returns why the request must be terminated now; empty if it must not, or if it already
// was.
func (t *Token) overdue(now time.Duration) Reason {
	if t.state != running || int64(now) < t.notBefore.Load() {
		return ""
	}
	switch due := t.due(now); {
	case now < due:
		t.lookAgain(now)
		return ""
	case t.own <= due:
		return Deadline
	default:
		return RanTooLong
	}
}

// arm starts a timer that looks whenever the request may be overdue, and cancels the handler's
// context if it is.
func (t *Token) arm(cancel context.CancelCauseFunc) {
	t.granted.mutex.Lock()
	defer t.granted.mutex.Unlock()
	t.cancel = cancel
	t.timer = time.AfterFunc(t.wait(), t.wake)
}

func (t *Token) wake() {
	t.look()
	t.granted.mutex.Lock()
	defer t.granted.mutex.Unlock()
	// The timer's clock may be a little ahead, or the threshold may have changed.
	if t.state == running && !t.isOver {
		t.timer.Reset(t.wait())
	}
}

func (t *Token) wait() time.Duration {
	return time.Duration(t.notBefore.Load()) - t.controller.now()
}

func (t *Token) disarm() {
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}

func (t *Token) due(now time.Duration) time.Duration {
	return min(t.start+t.granted.threshold(now), t.own)
}

func (t *Token) lookAgain(now time.Duration) {
	due := t.due(now)
	t.notBefore.Store(int64(min(due, max(t.granted.until(), t.start+t.granted.RunMin))))
}

func (t *Token) terminate(reason Reason, now time.Duration) {
	t.state, t.reason = terminated, reason
	t.notBefore.Store(0)
	t.disarm()
	switch reason {
	case RanTooLong:
		t.granted.totals.Terminated++
	case ClientLeft:
		t.granted.totals.ClientLeft++
	case Deadline:
		t.granted.totals.Deadline++
	}
	// An end before RunMin is no loss: otherwise cheap requests with tiny deadlines would lower the
	// threshold for all.
	if reason != ClientLeft && now-t.start >= t.granted.RunMin {
		t.granted.loses(now)
	} else {
		t.granted.departs(t.start, now)
	}
	// Send the stop before the context is cancelled, so that a lease released because of that is
	// released after the stop.
	for _, stopClient := range t.stopClients {
		stopClient.stop(t.name, reason)
	}
	if t.cancel != nil {
		// This cannot deadlock: functions that wait for the context run on goroutines of their own.
		t.cancel(t.terminated())
	}
}

// errNothing says that nothing ends a request any more, and so its connections are not leased.
var errNothing = errors.New("bywash: nothing ends the request any more")

// leases calls say with the longest time that can be left, if connections of the request may be
// leased. Otherwise it returns a *Terminated if the request is over, or errNothing. The stop client
// will be notified when the request is over. leases calls say under the lock, so that the lease is
// submitted before any stop of this process. A stop that came first would find nothing, and the
// daemon would not remember it.
func (t *Token) leases(stopClient *StopClient, say func(left time.Duration)) error {
	if err := t.Checkpoint(); err != nil {
		return err
	}
	t.granted.mutex.Lock()
	defer t.granted.mutex.Unlock()
	switch t.state {
	case running, settled:
		if !slices.Contains(t.stopClients, stopClient) {
			t.stopClients = append(t.stopClients, stopClient)
		}
		say(t.leftAtMost(t.controller.now()))
		return nil
	case terminated:
		return t.terminated()
	case deferred, ended:
	}
	return errNothing
}

// stopped records that the stop daemon has stopped the request. It returns a *Terminated, or nil if
// nothing ends the request any more.
func (t *Token) stopped(reason Reason) error {
	t.granted.mutex.Lock()
	defer t.granted.mutex.Unlock()
	if t.state == running || t.state == settled {
		// The daemon need not be told.
		t.stopClients = nil
		t.terminate(reason, t.controller.now())
	}
	if t.state != terminated {
		return nil
	}
	return t.terminated()
}

// leftAtMost returns the longest time that can be left, since the threshold may grow meanwhile;
// never if no time ends the request.
func (t *Token) leftAtMost(now time.Duration) time.Duration {
	if t.state != running {
		return never
	}
	return min(t.start+t.granted.RunMax, t.own) - now
}

func (t *Token) terminated() *Terminated {
	return &Terminated{t.granted.Name, t.reason, t.granted.comeAgain()}
}

type key struct{}

// From returns the token of the request that ctx belongs to; nil if it has none.
func From(ctx context.Context) *Token {
	token, _ := ctx.Value(key{}).(*Token)
	return token
}

// Checkpoint returns a *Terminated if the request that ctx belongs to is over; nil if it is not, or
// if ctx belongs to no request of a class.
func Checkpoint(ctx context.Context) error {
	if token := From(ctx); token != nil {
		return token.Checkpoint()
	}
	return nil
}
