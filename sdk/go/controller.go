package bywash

// How long a request may run, per class: the controller of paper 2 (SERT §3.2), as in
// crates/engine/src/terminate/loss.rs. Both must agree with lab/golden/termination.csv. The
// fraction p of the requests of a class that arrived in an interval was lost: refused, terminated by
// the threshold, or ended by a deadline when they had run for RunMin. The threshold of the next
// interval follows from p. A client that leaves, and a deadline before RunMin, say nothing about
// the load: a request that arrived in this interval and ends so counts as not arrived.
//
// One mutex for each class guards its counts and the states of its tokens. It is held for a few
// steps and never while anything waits. A checkpoint of a request that has time left takes no lock
// (token.go).

import (
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"
)

// Stats has the counts of a class since the start, and its present values.
type Stats struct {
	// Arrived is the number of requests that have arrived, including refused ones.
	Arrived uint64
	// Lost is the number of lost requests: refused, terminated by the threshold, or ended by a
	// deadline after they had run for RunMin. P is the fraction of such requests.
	Lost uint64
	// Terminated is the number of requests that were terminated by the threshold.
	Terminated uint64
	// Deadline is the number of requests that ended because the time that their caller allowed was
	// over.
	Deadline uint64
	// ClientLeft is the number of requests that ended because their client had left.
	ClientLeft uint64
	// Deferred is the number of requests that called CancelTermination with success.
	Deferred uint64
	// Running is the number of requests that have begun and not ended.
	Running uint64
	// P is the fraction of the requests of the last whole interval that were lost.
	P float64
	// Threshold is the time for which a request may run at present.
	Threshold time.Duration
}

// granted is a class of a controller: its settings, its counts, its threshold and its lock.
type granted struct {
	Class
	mutex  sync.Mutex
	totals Stats
	p      float64
	// The begin of this interval by the controller's clock, and the arrivals and losses in it.
	since         time.Duration
	arrived, lost uint64
}

// until returns the end of this interval. The threshold does not change before it.
func (g *granted) until() time.Duration { return g.since + g.Interval }

func (g *granted) tick(now time.Duration) {
	passed := (now - g.since) / g.Interval
	if passed < 1 {
		return
	}
	g.since += g.Interval * passed
	// Without arrivals nothing was lost in an interval: terminated requests had arrived before it.
	g.p = 0
	if passed == 1 && g.arrived > 0 {
		g.p = min(float64(g.lost)/float64(g.arrived), 1)
	}
	g.arrived, g.lost = 0, 0
}

func (g *granted) threshold(now time.Duration) time.Duration {
	g.tick(now)
	return g.granted(g.p)
}

func (g *granted) arrives(now time.Duration) {
	g.tick(now)
	g.arrived++
	g.totals.Arrived++
}

func (g *granted) loses(now time.Duration) {
	g.tick(now)
	g.lost++
	g.totals.Lost++
}

// departs uncounts a request that arrived at the time came and ended without being lost, if it
// arrived in the present interval.
func (g *granted) departs(came, now time.Duration) {
	g.tick(now)
	if came >= g.since {
		g.arrived--
	}
}

// Controller has the classes of this process. It is safe for concurrent use.
type Controller struct {
	clock   func() time.Time
	epoch   time.Time
	classes map[string]*granted
}

// NewController checks the classes and creates the controller.
func NewController(classes ...Class) (*Controller, error) {
	return NewControllerWithClock(time.Now, classes...)
}

// NewControllerWithClock creates a controller with another clock, so that tests need not wait. The
// clock must never go backwards. The timers of the middleware use real time, and read this clock
// when they fire.
func NewControllerWithClock(clock func() time.Time, classes ...Class) (*Controller, error) {
	c := &Controller{clock, clock(), make(map[string]*granted, len(classes))}
	for _, class := range classes {
		if err := class.check(); err != nil {
			return nil, err
		}
		if c.classes[class.Name] != nil {
			return nil, &SettingError{class.Name, "it is declared twice"}
		}
		c.classes[class.Name] = &granted{Class: class}
	}
	return c, nil
}

// now returns the time since the controller was created. The time is monotonic, and small enough
// for an atomic.
func (c *Controller) now() time.Duration { return c.clock().Sub(c.epoch) }

// Arrived counts the arrival of a request that gets no token because it is refused. A call to Lost
// must follow.
func (c *Controller) Arrived(class string) error {
	return c.locked(class, func(g *granted) { g.arrives(c.now()) })
}

// Lost counts a request that was refused because of overload before it did any work.
func (c *Controller) Lost(class string) error {
	return c.locked(class, func(g *granted) { g.loses(c.now()) })
}

// Threshold returns the time for which a request of this class may run at present.
func (c *Controller) Threshold(class string) (threshold time.Duration, err error) {
	err = c.locked(class, func(g *granted) { threshold = g.threshold(c.now()) })
	return threshold, err
}

// Stats returns the counts and present values of every class, by name.
func (c *Controller) Stats() map[string]Stats {
	stats := make(map[string]Stats, len(c.classes))
	for name, g := range c.classes {
		g.mutex.Lock()
		now := g.totals
		now.Threshold = g.threshold(c.now())
		now.P = g.p
		g.mutex.Unlock()
		stats[name] = now
	}
	return stats
}

func (c *Controller) locked(class string, do func(*granted)) error {
	g, err := c.of(class)
	if err != nil {
		return err
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	do(g)
	return nil
}

func (c *Controller) of(class string) (*granted, error) {
	if g := c.classes[class]; g != nil {
		return g, nil
	}
	known := make([]string, 0, len(c.classes))
	for name := range c.classes {
		known = append(known, name)
	}
	sort.Strings(known)
	return nil, &SettingError{class, fmt.Sprintf("it is not declared; declared: %s", strings.Join(known, ", "))}
}
