//! Tests of permanent clients: a comparison with a formula, and the choice of sets that are
//! counted.

use std::path::Path;

use bywash_scenario::{Closes, ResultRow, Scenario};

/// Returns a scenario with two classes: a page, which the application's workers serve, and a
/// search, which a database with its own workers serves. `sets` is the TOML text of the sets of
/// clients.
fn scenario(workers: u32, database: u32, sets: &str) -> Scenario {
    let class = |name: &str, more: &str| {
        format!(
            "[[class]]\nname = '{name}'\nrequest = 'GET /{name}'\ntier = 'browsing'\nutility = 1\n\
             service = {{ mean = '500ms', shape = 'exponential' }}\n{more}\nnext = {{ search = 0.95 }}\n"
        )
    };
    let text = format!(
        "name = 'sets'\nservers = {{ workers = {workers}, limit = 1000, \
         station = [{{ name = 'database', workers = {database} }}] }}\n\
         session = {{ start = 'search', order = 'page' }}\narrivals = {{ shape = 'poisson' }}\n\
         run = {{ rho = [1], seeds = 4, duration = '1h' }}\n{}{}{sets}\n\
         [client]\nthink = {{ mean = '1s', shape = 'exponential' }}\npatience = {{ shape = 'none' }}\n\
         [[policy]]\nname = 'single-queue'\ncapacity = 1000\n",
        class("page", ""),
        class("search", "station = 'database'"),
    );
    Scenario::parse(&text, Path::new(".")).expect("it is well-formed")
}

fn cells(scenario: &Scenario) -> Vec<ResultRow> {
    bywash_sim::run(scenario, &|_, _| ()).expect("it can be played").0.cells
}

/// Returns the throughput per second of `clients` clients that alternate between thinking and
/// requesting, by the formula for a finite source. The probability that n of N clients are with the
/// server is N!/(N−n)! (s/Z)ⁿ times the probability that none is. Here s is the service time and Z
/// the think time.
fn of_a_finite_source(clients: u32, service: f64, think: f64) -> f64 {
    let terms = (0..=clients).scan(1.0, |term, n| {
        let now = *term;
        *term *= f64::from(clients - n) * service / think;
        Some(now)
    });
    let all: Vec<f64> = terms.collect();
    (1.0 - all[0] / all.iter().sum::<f64>()) / service
}

#[test]
fn so_many_are_answered_as_the_formula_for_a_finite_source_says() {
    for clients in [1, 5, 20] {
        let sets = format!("[[set]]\nname = 'all'\nclients = {clients}\n");
        let cell = cells(&scenario(1, 1, &sets)).remove(0);
        let each = cell.completed as f64 / 4.0 / 3600.0;
        let exact = of_a_finite_source(clients, 0.5, 1.0);
        assert!((each / exact - 1.0).abs() < 0.02, "{clients} clients: {each}, not {exact}");
        assert_eq!(cell.generated, cell.completed);
    }
}

fn two_sets() -> Scenario {
    let sets = "[[set]]\nname = 'control'\nclients = 4\n\
                [[set]]\nname = 'test'\nclients = 2\npatience = { mean = '1s', shape = 'constant' }\ncounted = false\n";
    let mut scenario = scenario(1, 1, sets);
    scenario.closes = vec![Closes::Hidden, Closes::Waiting, Closes::Visible];
    scenario
}

#[test]
fn of_two_sets_the_counted_one_is_counted_and_gains_by_what_the_other_gives_up() {
    let scenario = two_sets();
    let cells = cells(&scenario);
    let answered = |index: usize| cells[index].completed as f64;
    for cell in &cells {
        assert_eq!(cell.timed_out, 0, "those who cancel are not counted");
        assert_eq!(cell.generated, cell.completed);
    }
    // Two of six clients give up after a second. The database can serve two searches per second,
    // and these two clients request one per second.
    assert!(
        answered(1) > 1.2 * answered(0),
        "seen while waiting: {} beside {}",
        answered(1),
        answered(0)
    );
    assert!(
        answered(2) > 1.02 * answered(1),
        "stopped as well: {} beside {}",
        answered(2),
        answered(1)
    );
    let again: Vec<u64> = self::cells(&scenario).iter().map(|cell| cell.completed).collect();
    assert_eq!(again, cells.iter().map(|cell| cell.completed).collect::<Vec<_>>());
}
