//! Simulates servers that respond with errors, and the effect of comparing them with the others.

use super::*;

/// Returns a server that answers the fraction `share` of its requests with an error, after `after`
/// milliseconds.
const fn errs(share: f64, after: u64) -> Nature {
    Nature::Errs { share, after: TimeSpan::from_millis(after), mean: TimeSpan::from_millis(20) }
}

/// Returns a case of two servers that work and `third`, at 200 requests/s for 1,000 s.
const fn beside(third: Nature) -> Case {
    Case { natures: [four_workers(20), four_workers(20), third], rate: 200.0, ..UNEQUAL }
}

fn errors(case: Case) -> (f64, u64) {
    let out = play(case, Policy::LeastLoaded);
    (out.errors.iter().sum::<u64>() as f64, out.ejections)
}

/// The broken server looks idle without reports of errors: it gets 58 % of the 200,000 requests.
#[test]
fn a_server_that_errs_at_once_draws_the_requests_unless_its_errors_count() {
    let hole = beside(errs(1.0, 1));
    let (untold, _) = errors(Case { tells_errors: false, ..hole });
    near(untold, 115_700.0);
    let (as_load, ejections) = errors(Case { eject_share: 0.0, ..hole });
    near(as_load, 66_300.0);
    assert_eq!(ejections, 0);
    // The result is that of a dead server: 16 ejections and returns, with one request at each
    // return.
    let (ejected, ejections) = errors(hole);
    assert_eq!(ejections, 16);
    assert!((20.0..100.0).contains(&ejected), "{ejected} errors");
}

#[test]
fn errors_need_not_be_fast_nor_all_to_stand_out() {
    for (third, most) in [(errs(1.0, 60), 100.0), (errs(0.6, 1), 400.0)] {
        let (errors, ejections) = errors(beside(third));
        assert!(ejections > 5 && errors < most, "{errors} errors, {ejections} ejections");
    }
    let (errors, ejections) = errors(beside(errs(0.3, 1)));
    assert_eq!(ejections, 0, "less than half is not enough");
    assert!(errors < 0.3 * 200_000.0 / 3.0, "{errors}: it gets no more than its part");
}

#[test]
fn servers_that_all_fail_alike_eject_nobody() {
    for share in [0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0] {
        for rate in [3.0, 10.0, 100.0] {
            let duration = TimeSpan::from_secs_f64(100_000.0 / rate);
            let case = Case { natures: [errs(share, 1); 3], rate, duration, ..UNEQUAL };
            assert_eq!(errors(case).1, 0, "{share} at {rate}/s");
        }
    }
}

#[test]
fn of_two_that_err_among_three_one_stays_in() {
    let natures = [four_workers(20), errs(1.0, 1), errs(1.0, 1)];
    let out = play(Case { natures, rate: 200.0, ..UNEQUAL }, Policy::LeastLoaded);
    let [_, second, third] = out.errors;
    assert!(second.min(third) < 200, "{:?}", out.errors);
    near(second.max(third) as f64, 100_000.0);
}
