package bywash

// What is declared of a class of requests, and what is refused as a declaration. Names, ranges and defaults are
// the gateway's (run_min, run_max; alpha, low, high and interval of the policy loss), so that a class means the
// same inside the application as in front of it. A wrong setting is an error when the controller is made: a
// threshold that is wrong shows itself only under overload.

import (
	"fmt"
	"math"
	"time"
)

// Class is a class of requests that can be terminated. NewClass has the defaults.
type Class struct {
	Name string
	// RunMin: no request is terminated before it has run for so long (LB).
	RunMin time.Duration
	// RunMax: one that runs longer is of use to nobody (UB).
	RunMax time.Duration
	// Alpha is how soon the threshold falls as the loss rises: at 1 in a straight line.
	Alpha float64
	// Low: up to this loss RunMax is granted.
	Low float64
	// High: from this loss on RunMin is granted.
	High float64
	// Interval is the time over which the loss is counted.
	Interval time.Duration
	// RetryAfter is when those who are terminated may come again: Interval, if it is zero.
	RetryAfter time.Duration
}

// NewClass is a class with the defaults of the gateway.
func NewClass(name string, runMin, runMax time.Duration) Class {
	return Class{
		Name: name, RunMin: runMin, RunMax: runMax,
		Alpha: 4, Low: 0.05, High: 0.15, Interval: 10 * time.Second,
	}
}

// SettingError is a setting that makes no sense: it names the field and the values.
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
		{"RetryAfter", c.RetryAfter, 0, time.Hour},
	} {
		if span.value < span.least || span.value > span.most {
			return wrong("%s is %v, not from %v to %v", span.field, span.value, span.least, span.most)
		}
	}
	for _, number := range []struct {
		field              string
		value, least, most float64
	}{{"Alpha", c.Alpha, 0, 100}, {"Low", c.Low, 0, 1}, {"High", c.High, 0, 1}} {
		// What is no number (NaN) lies nowhere.
		if !(number.value >= number.least && number.value <= number.most) {
			return wrong("%s is %v, not from %v to %v", number.field, number.value, number.least, number.most)
		}
	}
	if c.RunMin > c.RunMax {
		return wrong("RunMin %v lies above RunMax %v", c.RunMin, c.RunMax)
	}
	if c.Low >= c.High {
		return wrong("Low %v does not lie below High %v", c.Low, c.High)
	}
	return nil
}

// granted is the threshold if this share was lost: LB + F(p)(UB - LB), seed 2, SERT §3.2.
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

// comeAgain is after how long somebody who was terminated may come again.
func (c *Class) comeAgain() time.Duration {
	if c.RetryAfter > 0 {
		return c.RetryAfter
	}
	return c.Interval
}
