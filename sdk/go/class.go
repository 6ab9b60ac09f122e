package bywash

// The declaration of a class of requests, and the errors of a wrong declaration. Names, ranges and
// defaults are the gateway's (run_min, run_max; alpha, low, high and interval of the policy loss),
// so that a class means the same inside the application as in front of it. A wrong setting is an
// error when the controller is created, because a wrong threshold would show only under overload.

import (
	"fmt"
	"math"
	"time"
)

// Class is a class of requests that can be terminated. NewClass sets the defaults.
type Class struct {
	Name string
	// RunMin is how long each request may run before it can be terminated (LB).
	RunMin time.Duration
	// RunMax is the time after which a request is useless to its client (UB).
	RunMax time.Duration
	// Alpha is how fast the threshold falls as the loss rises: 1 is a straight line.
	Alpha float64
	// Low is the loss up to which a request may run for RunMax.
	Low float64
	// High is the loss from which on a request may run for RunMin.
	High float64
	// Interval is the period over which the loss is counted.
	Interval time.Duration
	// RetryAfter is after how long clients of terminated requests may retry. NewClass sets it to
	// AfterInterval.
	RetryAfter time.Duration
}

// AfterInterval as RetryAfter means the Interval of the class.
const AfterInterval time.Duration = -1

// NewClass returns a class with the defaults of the gateway.
func NewClass(name string, runMin, runMax time.Duration) Class {
	return Class{
		Name: name, RunMin: runMin, RunMax: runMax,
		Alpha: 4, Low: 0.05, High: 0.15, Interval: 10 * time.Second, RetryAfter: AfterInterval,
	}
}

// SettingError is an invalid setting. It names the field and the values.
type SettingError struct {
	Class, Text string
}

func (e *SettingError) Error() string {
	return fmt.Sprintf("bywash: class %q: %s", e.Class, e.Text)
}

func (c *Class) check() error {
	wrong := func(format string, values ...any) error {
		return &SettingError{c.Name, fmt.Sprintf(format, values...)}
	}
	if c.Name == "" {
		return wrong("its name is empty")
	}
	for _, span := range []struct {
		field       string
		value       time.Duration
		least, most time.Duration
	}{
		{"RunMin", c.RunMin, time.Millisecond, time.Hour},
		{"RunMax", c.RunMax, time.Millisecond, time.Hour},
		{"Interval", c.Interval, 100 * time.Millisecond, time.Hour},
		{"RetryAfter", c.comeAgain(), 0, time.Hour},
	} {
		if span.value < span.least || span.value > span.most {
			return wrong("%s is %v, and must be from %v to %v", span.field, span.value, span.least, span.most)
		}
	}
	for _, number := range []struct {
		field              string
		value, least, most float64
	}{{"Alpha", c.Alpha, 0, 100}, {"Low", c.Low, 0, 1}, {"High", c.High, 0, 1}} {
		// The negated form also rejects NaN.
		if !(number.value >= number.least && number.value <= number.most) {
			return wrong("%s is %v, and must be from %v to %v", number.field, number.value, number.least, number.most)
		}
	}
	if c.RunMin > c.RunMax {
		return wrong("RunMin %v must not be above RunMax %v", c.RunMin, c.RunMax)
	}
	if c.Low >= c.High {
		return wrong("Low %v must be below High %v", c.Low, c.High)
	}
	return nil
}

// granted returns the threshold for the loss p: LB + F(p)(UB - LB), paper 2, SERT §3.2.
func (c *Class) granted(p float64) time.Duration {
	if p <= c.Low {
		return c.RunMax
	}
	if p >= c.High {
		return c.RunMin
	}
	part := math.Pow((c.High-p)/(c.High-c.Low), c.Alpha)
	return c.RunMin + time.Duration(part*float64(c.RunMax-c.RunMin))
}

// comeAgain returns after how long the client of a terminated request may retry.
func (c *Class) comeAgain() time.Duration {
	if c.RetryAfter == AfterInterval {
		return c.Interval
	}
	return c.RetryAfter
}
