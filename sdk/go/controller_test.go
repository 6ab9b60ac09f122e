package bywash

// Tests of the controller's laws, on a clock that the test advances.

import (
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

type clock struct {
	mutex sync.Mutex
	at    time.Time
}

func (c *clock) now() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.at
}

func (c *clock) goes(span time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.at = c.at.Add(span)
}

const second = time.Second

// search returns a controller with two classes, and its clock. Each class has a RunMin of one
// second and a RunMax of nine.
func search(t *testing.T) (*Controller, *clock) {
	return controller(t, NewClass("search", second, 9*second), NewClass("other", second, 9*second))
}

func controller(t *testing.T, classes ...Class) (*Controller, *clock) {
	t.Helper()
	clock := &clock{at: time.Unix(1_800_000_000, 0)}
	c, err := NewControllerWithClock(clock.now, classes...)
	if err != nil {
		t.Fatal(err)
	}
	return c, clock
}

func load(t *testing.T, c *Controller, arrived, lost int) {
	t.Helper()
	for i := 0; i < arrived; i++ {
		must(t, c.Arrived("search"))
	}
	for i := 0; i < lost; i++ {
		must(t, c.Lost("search"))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// check fails the test on an error. It may be called on goroutines other than the test's own,
// unlike must.
func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

func TestEveryGoldenThresholdIsTheEngines(t *testing.T) {
	file, err := os.Open("../../lab/golden/termination.csv")
	must(t, err)
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	must(t, err)
	if len(rows) != 106 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows[1:] {
		number := func(column int) float64 {
			value, err := strconv.ParseFloat(row[column], 64)
			must(t, err)
			return value
		}
		class := NewClass("search", time.Duration(number(0))*time.Millisecond, time.Duration(number(1))*time.Millisecond)
		class.Alpha, class.Low, class.High = number(2), number(3), number(4)
		c, clock := controller(t, class)
		// Set the counts directly: counting millions of requests one by one would only be slow.
		c.classes["search"].arrived, c.classes["search"].lost = uint64(number(5)), uint64(number(6))
		clock.goes(10 * second)
		threshold, err := c.Threshold("search")
		must(t, err)
		if math.Abs(float64(threshold)-number(7)) > 1000 {
			t.Errorf("%v: %d", row, threshold)
		}
	}
}

func TestWhatMakesNoSenseIsRefusedWithTheFieldAndBothValues(t *testing.T) {
	nan := math.NaN()
	for _, wrong := range []struct {
		change func(*Class)
		words  []string
	}{
		{func(c *Class) { c.RunMin = 10 * second }, []string{"RunMin 10s", "RunMax 9s"}},
		{func(c *Class) { c.Low = 0.15 }, []string{"Low 0.15", "High 0.15"}},
		{func(c *Class) { c.RunMin = -second }, []string{"RunMin is -1s", "1ms"}},
		{func(c *Class) { c.RunMax = 2 * time.Hour }, []string{"RunMax is 2h0m0s", "1h0m0s"}},
		{func(c *Class) { c.Alpha = nan }, []string{"Alpha is NaN", "100"}},
		{func(c *Class) { c.Alpha = -4 }, []string{"Alpha is -4", "0"}},
		{func(c *Class) { c.Low = nan }, []string{"Low is NaN"}},
		{func(c *Class) { c.High = 1.5 }, []string{"High is 1.5", "1"}},
		{func(c *Class) { c.Interval = 0 }, []string{"Interval is 0s", "100ms"}},
		{func(c *Class) { c.RetryAfter = -second }, []string{"RetryAfter is -1s"}},
		{func(c *Class) { c.Name = "" }, []string{"name"}},
	} {
		class := NewClass("search", second, 9*second)
		wrong.change(&class)
		_, err := NewController(class)
		if err == nil {
			t.Errorf("taken: %+v", class)
			continue
		}
		for _, word := range wrong.words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%q says nothing of %q", err, word)
			}
		}
	}
}

func TestAClassThatIsNotDeclaredIsAnError(t *testing.T) {
	c, _ := search(t)
	_, begun := c.Begin("page")
	_, wrapped := c.Middleware("page")
	_, threshold := c.Threshold("page")
	for _, err := range []error{begun, wrapped, threshold, c.Lost("page"), c.Arrived("page")} {
		if err == nil || !strings.Contains(err.Error(), `"page"`) || !strings.Contains(err.Error(), "search") {
			t.Error(err)
		}
	}
	if _, err := NewController(NewClass("a", 1*second, second), NewClass("a", second, second)); err == nil {
		t.Error("twice")
	}
}
