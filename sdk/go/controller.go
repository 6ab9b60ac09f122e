package bywash

// How long a request may run, by class: the controller of seed 2 (SERT §3.2), as in
// crates/engine/src/terminate/loss.rs; lab/golden/termination.csv is what both must say. Of the requests of a
// class that came in an interval, p were lost: refused, terminated by the threshold, or ended by a deadline when
// they had run for RunMin. The threshold of the next interval follows from p. A client who leaves, or a deadline
// before RunMin, says nothing of how much there is to do: who came in this interval and ends so did not arrive.
//
// One mutex for each class guards its counts and the states of its tokens; it is held for a few steps and never
// while anything waits. A checkpoint of a request that has time left takes no lock (token.go).

import (
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"
)

// Stats is a class in numbers: counts since the start, and what holds now.
type Stats struct {
	// Arrived requests: all who came.
	Arrived uint64
	// Lost of these: refused, terminated by the threshold, or ended by a deadline after RunMin. What is in P.
	Lost uint64
	// Terminated by the threshold.
	Terminated uint64
	// Deadline: ended because the time that their caller had left to them was over.
	Deadline uint64
	// ClientLeft: ended because their client had left.
	ClientLeft uint64
	// Deferred: those who called CancelTermination.
	Deferred uint64
	// Running: begun and not ended.
	Running uint64
	// P is the share that was lost in the last whole interval.
	P float64
	// Threshold is how long a request may run now.
	Threshold time.Duration
}

// granted is one class: its counts, its threshold, its lock.
type granted struct {
	Class
	mutex  sync.Mutex
	totals Stats
	p      float64
	// When this interval began, by the controller's clock, and who came and was lost in it.
	since         time.Duration
	arrived, lost uint64
}

// until is the end of this interval: till then the threshold stays.
func (g *granted) until() time.Duration { return g.since + g.Interval }

func (g *granted) tick(now time.Duration) {
	passed := (now - g.since) / g.Interval
	if passed < 1 {
		return
	}
	g.since += g.Interval * passed
	// In an interval that nobody came in, nobody was lost; those who were terminated had come before.
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

// departs takes one that came then out of this interval's arrivals.
func (g *granted) departs(came, now time.Duration) {
	g.tick(now)
	if came >= g.since {
		g.arrived--
	}
}

// Controller has the classes of this process. Every method may be called from every goroutine.
type Controller struct {
	clock   func() time.Time
	epoch   time.Time
	classes map[string]*granted
}

// NewController checks the classes.
func NewController(classes ...Class) (*Controller, error) {
	return NewControllerWithClock(time.Now, classes...)
}

// NewControllerWithClock takes a clock of one's own, which never goes back: what depends on time can be tested
// without waiting. The timers of the middleware go by real time, and ask this clock when they wake.
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

// now is the time since the controller was made: monotonic, and small enough for an atomic.
func (c *Controller) now() time.Duration { return c.clock().Sub(c.epoch) }

// Arrived counts a request that gets no token, because it is refused: Lost follows.
func (c *Controller) Arrived(class string) error {
	return c.locked(class, func(g *granted) { g.arrives(c.now()) })
}

// Lost counts a request that was refused before it did anything, as there was too much to do.
func (c *Controller) Lost(class string) error {
	return c.locked(class, func(g *granted) { g.loses(c.now()) })
}

// Threshold is how long a request of this class may run now.
func (c *Controller) Threshold(class string) (threshold time.Duration, err error) {
	err = c.locked(class, func(g *granted) { threshold = g.threshold(c.now()) })
	return threshold, err
}

// Stats is every class in numbers.
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
