package databasetest

// The cost of a lease for a query that does nothing, over one connection on loopback.
//
//	scripts/with-databases postgres mariadb -- go -C sdk/go/databasetest test -run none -bench .
//
// Three sides run in turns in one process: the driver alone, leased with a daemon, and wrapped
// without one. The ratios hold on another machine, although the times do not. The benchmark reports
// the median of the turns.

import (
	"context"
	"database/sql"
	"path/filepath"
	"sort"
	"testing"
	"time"
)

const (
	turns   = 15
	queries = 1500
)

func BenchmarkQuery(b *testing.B) {
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			with := open(b, kind)
			without := openAt(b, kind, nil, filepath.Join(b.TempDir(), "nobody"))
			leased, _ := with.request("r1")
			wrapped, _ := without.request("r1")
			for i := 0; i < b.N; i++ {
				var alone, lease, ratio, absent []float64
				for turn := 0; turn < turns; turn++ {
					a := aTurn(b, context.Background(), with.watch)
					l, w := aTurn(b, leased, with.db), aTurn(b, wrapped, without.db)
					alone, lease = append(alone, a), append(lease, l)
					ratio, absent = append(ratio, l/a), append(absent, w/a)
				}
				b.ReportMetric(median(alone), "us-alone")
				b.ReportMetric(median(lease), "us-leased")
				b.ReportMetric(median(ratio), "ratio")
				b.ReportMetric(median(absent), "ratio-without-daemon")
			}
			b.ReportMetric(0, "ns/op")
			if stats := with.stopClient.Stats(); stats.Leased != uint64(b.N*turns*queries) {
				b.Errorf("%+v", stats)
			}
		})
	}
}

// aTurn returns the mean time of one query, in microseconds.
func aTurn(b *testing.B, ctx context.Context, db *sql.DB) float64 {
	db.SetMaxOpenConns(1)
	start := time.Now()
	for i := 0; i < queries; i++ {
		var one int
		if err := db.QueryRowContext(ctx, "SELECT 1").Scan(&one); err != nil {
			b.Fatal(err)
		}
	}
	return float64(time.Since(start).Microseconds()) / queries
}

func median(of []float64) float64 {
	sort.Float64s(of)
	return of[len(of)/2]
}
