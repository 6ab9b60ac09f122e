//! An invented result for the tests and for `examples/sample.rs`. The result looks like that of an
//! overload, but none of its values is real.

use bywash_scenario::{
    ClassRow, Closes, EmpiricalCdf, ResultRow, RunResult, Second, TierResponses,
};

/// Returns a result with three policies at four offered loads, with closes visible and hidden. The
/// rows for ρ = 1.4 and ρ = 2 have timelines.
pub(crate) fn result() -> RunResult {
    let mut cells = Vec::new();
    for closes in [Closes::Visible, Closes::Hidden] {
        for rho in [0.75, 1.0, 1.4, 2.0] {
            for policy in ["fifo", "lifo-pri", "session push-out <b>"] {
                cells.push(cell(policy, rho, closes));
            }
        }
    }
    RunResult { scenario: "flash crowd".into(), seeds: (1..=30).collect(), invalid: None, cells }
}

/// Returns one row of [`result`].
pub(crate) fn cell(policy: &str, rho: f64, closes: Closes) -> ResultRow {
    let loss = loss(policy, rho, closes);
    let generated = (30_000.0 * rho) as u64;
    let [timed_out, dropped] = [0.6, 0.4].map(|part| (generated as f64 * loss * part) as u64);
    let orders = (400.0 * (1.0 - loss).powi(2)) as u64;
    ResultRow {
        policy: policy.into(),
        rho,
        closes,
        duration_s: 600.0,
        generated,
        completed: generated - timed_out - dropped,
        timed_out,
        dropped,
        terminated: 0,
        failed: 0,
        not_generated: (generated as f64 * loss * 0.3) as u64,
        useful_work: 1.0 - loss,
        useful_error: Some(0.002 + loss * 0.01),
        wasted_work: Some(loss * 0.8),
        revenue_share: (1.0 - loss).powi(2),
        revenue_error: Some(0.004 + loss * 0.02),
        orders,
        requests_planned: generated,
        orders_planned: 560,
        orders_possible: 400.0,
        hostile: None,
        observed: None,
        recovery: None,
        response: TierResponses {
            all: cdf(1.0 + 8.0 * loss),
            browsing: cdf(1.0 + 10.0 * loss),
            transactions: cdf(1.0),
        },
        classes: ["home", "search", "confirm"].map(|name| class(name, loss)).into(),
        per_seed: Vec::new(),
        sessions: 0,
        session_s: 0.0,
        timeline: if rho > 1.2 { timeline(rho, loss) } else { Vec::new() },
    }
}

fn loss(policy: &str, rho: f64, closes: Closes) -> f64 {
    let worst = match policy {
        "fifo" => 0.9,
        "lifo-pri" => 0.4,
        _ => 0.25,
    };
    let seen = if closes == Closes::Visible { 0.6 } else { 1.0 };
    worst * seen * (1.0 - 1.0 / rho.max(1.0)) * 1.4 + 0.01
}

fn class(name: &str, loss: f64) -> ClassRow {
    let generated = 12_345;
    let unanswered = (12_345.0 * loss) as u64;
    ClassRow {
        class: name.into(),
        generated,
        completed: generated - unanswered,
        timed_out: unanswered / 2,
        dropped: unanswered - unanswered / 2,
        terminated: 0,
        failed: 0,
        mean_ms: 41.5,
        deviation: 0.5,
        p50_ms: 8.25,
        p99_ms: 1_830.0,
        longest_ms: 2_400.0,
        response: cdf(1.0 + 8.0 * loss),
    }
}

/// Returns an exponential distribution with a mean of `mean_s` seconds, at eighty points from 10 ms
/// to 100 s.
fn cdf(mean_s: f64) -> EmpiricalCdf {
    let point = |i: i32| {
        let ms = 10_f64.powf(1.0 + f64::from(i) / 20.0);
        (ms, 1.0 - (-ms / 1e3 / mean_s).exp())
    };
    EmpiricalCdf((0..=80).map(point).collect())
}

/// Returns a timeline of ten minutes, with a crowd from the third to the seventh minute.
fn timeline(rho: f64, loss: f64) -> Vec<Second> {
    let second = |s: u64| {
        let wave = 3.0 * (s as f64 / 9.0).sin() + 2.0 * (s as f64 / 2.3).sin();
        let crowd = if (180..420).contains(&s) { rho } else { 0.6 };
        let generated = (25.0 * crowd + wave).max(0.0);
        let unanswered = if (180..450).contains(&s) { generated * loss * 1.3 } else { 0.0 };
        Second {
            generated: generated as u64,
            completed: (generated - unanswered).max(0.0) as u64,
            timed_out: (unanswered * 0.6) as u64,
            dropped: (unanswered * 0.4) as u64,
            terminated: 0,
            failed: u64::from(s > 400 && s < 420) * 3,
            useful_us: 0,
            orders: u64::from((s * 7919) % 97 < (60.0 * (1.0 - loss)) as u64),
        }
    };
    (0..600).map(second).collect()
}
