package bywash

// The cost of the middleware: a request without and with it, and a checkpoint.
//
//	go test -run none -bench . ./...     (in sdk/go)
//
// Both sides run in turns in one process, each over one connection to net/http on loopback. So the
// ratio holds on another machine, although the times do not. The benchmark reports the median of
// the turns.

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sort"
	"testing"
	"time"
)

const (
	turns    = 15
	requests = 3000
)

func BenchmarkRequest(b *testing.B) {
	c, err := NewController(NewClass("search", second, 30*second))
	if err != nil {
		b.Fatal(err)
	}
	wrap, err := c.Middleware("search")
	if err != nil {
		b.Fatal(err)
	}
	plain := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("done")) })
	without, with := httptest.NewServer(plain), httptest.NewServer(wrap(plain))
	defer without.Close()
	defer with.Close()
	for i := 0; i < b.N; i++ {
		var times, timesWith, ratios []float64
		for turn := 0; turn < turns; turn++ {
			a, b := aTurn(b, without.URL), aTurn(b, with.URL)
			times, timesWith, ratios = append(times, a), append(timesWith, b), append(ratios, b/a)
		}
		b.ReportMetric(median(times), "us-without")
		b.ReportMetric(median(timesWith), "us-with")
		b.ReportMetric(median(ratios), "ratio")
	}
	b.ReportMetric(0, "ns/op")
}

// aTurn returns the mean time of one request, in microseconds.
func aTurn(b *testing.B, url string) float64 {
	client := &http.Client{}
	start := time.Now()
	for i := 0; i < requests; i++ {
		response, err := client.Get(url)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
	return float64(time.Since(start).Microseconds()) / requests
}

func median(of []float64) float64 {
	sort.Float64s(of)
	return of[len(of)/2]
}

func begun(b *testing.B) *Token {
	c, err := NewController(NewClass("search", time.Hour, time.Hour))
	if err != nil {
		b.Fatal(err)
	}
	token, err := c.Begin("search")
	if err != nil {
		b.Fatal(err)
	}
	return token
}

func BenchmarkCheckpoint(b *testing.B) {
	token := begun(b)
	for i := 0; i < b.N; i++ {
		if token.Checkpoint() != nil {
			b.Fatal("it is over")
		}
	}
}

func BenchmarkCheckpointOfAContext(b *testing.B) {
	ctx := context.WithValue(context.Background(), key{}, begun(b))
	for i := 0; i < b.N; i++ {
		if Checkpoint(ctx) != nil {
			b.Fatal("it is over")
		}
	}
}
