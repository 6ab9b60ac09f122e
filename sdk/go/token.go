package bywash

// The token of one request: may it go on?
//
// States: running, then one of settled (its response has begun), deferred (it asked not to be terminated),
// terminated; from any of them ended. A client who leaves terminates a running or a settled request, for nobody
// reads its response; a deferred one goes on. States change under the mutex of the class, and none because somebody
// asks whether it is over.
//
// notBefore makes a checkpoint cheap: the moment before which nothing can terminate this request. A threshold
// changes only at the end of an interval and never falls below RunMin, so until then the clock decides alone. It
// is also when a timer has to look again.

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// Reason is why a request was terminated: the gateway's words (crates/engine/src/reason.rs), and
// Deadline, which only the application knows.
type Reason string

const (
	// RanTooLong: it had run as long as a request of its class may.
	RanTooLong Reason = "ran_too_long"
	// ClientLeft: its client closed the connection.
	ClientLeft Reason = "client_left"
	// Deadline: the time that its caller had left to it was over.
	Deadline Reason = "deadline"
)

// Terminated is the error of a request that is over: whoever works for it stops. It wraps
// context.DeadlineExceeded, or context.Canceled if its client has left.
type Terminated struct {
	Class  string
	Reason Reason
	// RetryAfter is when it may come again: of use after RanTooLong, for the other reasons say nothing of it.
	RetryAfter time.Duration
}

func (t *Terminated) Error() string {
	return fmt.Sprintf("bywash: class %s: %s", t.Class, t.Reason)
}

// Unwrap is what the error is for whoever knows contexts only.
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

// Token is one request. Every method may be called from every goroutine.
type Token struct {
	controller *Controller
	granted    *granted
	start      time.Duration
	// Until when its caller wants it.
	own       time.Duration
	notBefore atomic.Int64
	// What it brought along, and passes on.
	name, traceParent string
	traceState        []string
	// Under the mutex of the class:
	state  state
	isOver bool
	reason Reason
	timer  *time.Timer
	cancel context.CancelCauseFunc
	// Who knows of leases of its, and is told when it is over.
	sentries []*Sentry
}

// Begin is the token of a request that begins now, outside of net/http. Settle, Leave and End say what becomes of
// it.
func (c *Controller) Begin(class string) (*Token, error) { return c.BeginWithin(class, never) }

// BeginWithin is Begin for a request whose caller has so much time left to it.
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

// Class is the name of its class.
func (t *Token) Class() string { return t.granted.Name }

// Deadline is when it is terminated as things are; false if it is not.
func (t *Token) Deadline() (time.Time, bool) {
	t.granted.mutex.Lock()
	defer t.granted.mutex.Unlock()
	if t.state != running && t.state != terminated {
		return time.Time{}, false
	}
	return t.controller.epoch.Add(t.due(t.controller.now())), true
}

// Left is the time that is left to it as things are: 0 if it is over, the greatest Duration if it is without
// limit.
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

// IsTerminated says whether it is over; also once it is overdue and has not been told. Asking changes nothing.
func (t *Token) IsTerminated() bool {
	t.granted.mutex.Lock()
	defer t.granted.mutex.Unlock()
	return t.reason != "" || t.overdue(t.controller.now()) != ""
}

// Reason is why it is over, once it has been told; empty until then.
func (t *Token) Reason() Reason {
	t.granted.mutex.Lock()
	defer t.granted.mutex.Unlock()
	return t.reason
}

// Checkpoint is a *Terminated if this request is over, else nil.
func (t *Token) Checkpoint() error {
	if int64(t.controller.now()) < t.notBefore.Load() {
		return nil
	}
	if t.look() != "" {
		return t.terminated()
	}
	return nil
}

// CancelTermination is the last checkpoint: if it returns nil, nothing terminates this request any more. Before
// a write, for one.
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

// End says that nobody works for it any more. Once is enough, twice is no harm.
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
	// Whoever still works for one that was terminated is still to be told.
	if t.state != terminated {
		t.state = ended
		t.notBefore.Store(int64(never))
	}
}

// Settle says that the first byte of its response goes out: no time terminates it any more.
func (t *Token) Settle() {
	t.granted.mutex.Lock()
	defer t.granted.mutex.Unlock()
	if t.state == running {
		t.state = settled
		t.notBefore.Store(int64(never))
		t.disarm()
	}
}

// Leave says that its client has left.
func (t *Token) Leave() { t.leave(ClientLeft) }

// leave says that nobody waits for its response. A gateway closes the connection a moment before the time is over
// here: who leaves in the last tenth of it has come to his deadline, unless his response has begun.
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

// look terminates it if it is overdue. Why it is over, if it is.
func (t *Token) look() Reason {
	t.granted.mutex.Lock()
	defer t.granted.mutex.Unlock()
	now := t.controller.now()
	if reason := t.overdue(now); reason != "" {
		t.terminate(reason, now)
	}
	return t.reason
}

// overdue is why it is to be told that it is over; empty if it is not, or has been told.
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

// arm has a timer look whenever it may be overdue, and cancel the context of its handler if it is.
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
	// The timer's clock may be a little ahead, or the threshold has changed.
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
	isLost := true
	switch reason {
	case RanTooLong:
		t.granted.totals.Terminated++
	case ClientLeft:
		t.granted.totals.ClientLeft++
		isLost = false
	case Deadline:
		t.granted.totals.Deadline++
		// Before that, cheap requests with tiny deadlines would lower everybody's threshold.
		isLost = now-t.start >= t.granted.RunMin
	}
	if isLost {
		t.granted.loses(now)
	} else {
		t.granted.departs(t.start, now)
	}
	// Before its context is cancelled: whoever releases a lease because of that does so after the stop.
	for _, sentry := range t.sentries {
		sentry.stop(t.name, reason)
	}
	if t.cancel != nil {
		// It calls nobody of ours before it returns: those who wait for the context have goroutines of their own.
		t.cancel(t.terminated())
	}
}

// leases says whether its connections may be leased: not if it is over, nor if nothing ends it any more. If so the
// sentry will be told when it is. say is given what is left to it at most, and says what is leased while nobody else
// can say that it is over: a stop of one's own that came first would find nothing, and not be remembered.
func (t *Token) leases(sentry *Sentry, say func(left time.Duration)) (bool, error) {
	if err := t.Checkpoint(); err != nil {
		return false, err
	}
	t.granted.mutex.Lock()
	defer t.granted.mutex.Unlock()
	switch t.state {
	case running, settled:
		if !slices.Contains(t.sentries, sentry) {
			t.sentries = append(t.sentries, sentry)
		}
		say(t.leftAtMost(t.controller.now()))
		return true, nil
	case terminated:
		return false, t.terminated()
	case deferred, ended:
	}
	return false, nil
}

// leftAtMost is what can be left to it yet: the threshold may grow while it runs. never if no time ends it.
func (t *Token) leftAtMost(now time.Duration) time.Duration {
	if t.state != running {
		return never
	}
	return min(t.start+t.granted.RunMax, t.own) - now
}

func (t *Token) terminated() *Terminated { return t.over(t.reason) }

// over is the error of this request, if it is over for this reason.
func (t *Token) over(reason Reason) *Terminated {
	return &Terminated{t.granted.Name, reason, t.granted.comeAgain()}
}

type key struct{}

// From is the token of the request that ctx belongs to; nil if it has none.
func From(ctx context.Context) *Token {
	token, _ := ctx.Value(key{}).(*Token)
	return token
}

// Checkpoint is a *Terminated if the request that ctx belongs to is over; nil if it is not, or ctx belongs to no
// request of a class.
func Checkpoint(ctx context.Context) error {
	if token := From(ctx); token != nil {
		return token.Checkpoint()
	}
	return nil
}
