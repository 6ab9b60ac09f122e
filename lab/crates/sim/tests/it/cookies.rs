//! Tests which session a visitor's requests claim: none, until the visitor has read an answer.

use std::path::Path;

use bywash_engine::catalog::{LimitSettings, Policy, Settings, TerminationSettings};
use bywash_engine::queue::{Push, QueueView, Scheduler};
use bywash_engine::{Reason, RequestId};
use bywash_scenario::{
    Adversary, Claims, Closes, Departures, Distribution, Mode, PrincipalKind, ResultRow, Scenario,
    Tally,
};
use bywash_sim::{Case, play};
use bywash_units::TimeSpan;

/// A policy that refuses every request that claims a session. All other requests get a slot or a
/// place in the queue.
struct NobodyWithACookie;

static NOBODY_WITH_A_COOKIE: Policy = Policy {
    name: "nobody-with-a-cookie",
    source: "this test",
    about: "",
    parameters: &[],
    build: |_, _| Box::new(NobodyWithACookie),
};

impl Scheduler for NobodyWithACookie {
    fn reject(&mut self, moment: &QueueView<'_>, id: RequestId) -> Option<Reason> {
        moment.waiting(id).claims_session.then_some(Reason::QueueFull)
    }

    fn push(&mut self, moment: &QueueView<'_>, id: RequestId) -> Push {
        self.reject(moment, id).map_or(Push::Queued, Push::Refused)
    }

    fn pop(&mut self, moment: &QueueView<'_>) -> Option<(RequestId, Reason)> {
        moment.oldest().map(|id| (id, Reason::Best))
    }

    fn lifo(&self) -> bool {
        false
    }
}

/// Returns a scenario with two pages of one second each. A visit to the second page always follows
/// a visit to the first.
fn pages(patience: &str) -> Scenario {
    let page = |name, next| {
        format!(
            "[[class]]\nname = \"{name}\"\nrequest = \"GET /\"\ntier = \"browsing\"\nutility = 1\n\
             service = {{ mean = \"1s\", shape = \"constant\" }}\nnext = {{ {next} }}\n"
        )
    };
    let text = format!(
        "name = \"two pages\"\n[servers]\nworkers = 50\n{}{}\
         [session]\nstart = \"first\"\norder = \"second\"\n[arrivals]\nshape = \"poisson\"\n\
         [client]\nthink = {{ mean = \"1s\", shape = \"constant\" }}\n\
         patience = {{ mean = \"{patience}\", shape = \"constant\" }}\nretries = 2\n\
         [run]\nrho = [0.5]\nduration = \"100s\"\n",
        page("first", "second = 1.0"),
        page("second", "")
    );
    Scenario::parse(&text, Path::new(".")).expect("the scenario is well-formed")
}

fn case<'a>(
    scenario: &'a Scenario,
    settings: &'a Settings,
    limit: &'a LimitSettings,
    termination: &'a TerminationSettings,
    closes: Closes,
) -> Case<'a> {
    Case {
        scenario,
        settings,
        limit,
        termination,
        throttles: &[],
        principal: PrincipalKind::Session,
        departures: Departures::Noticed,
        mode: Mode::Enforce,
        rho: 0.5,
        closes,
        seed: 1,
        trace: None,
    }
}

fn played(patience: &str, closes: Closes) -> ResultRow {
    let scenario = pages(patience);
    let settings = NOBODY_WITH_A_COOKIE.settings([]).expect("it has no parameters");
    let (settings, limit) = (&settings, &scenario.workers.into());
    let termination = TerminationSettings::default();
    let case = case(&scenario, settings, limit, &termination, closes);
    Tally::result_row(&[play(case).tally], &scenario, "", 0.5, closes)
}

#[test]
fn a_visitor_has_a_cookie_from_her_first_answer_on() {
    let cell = played("100s", Closes::Visible);
    let [first, second] = &cell.classes[..] else { panic!("the scenario has two classes") };
    assert!(first.completed > 100 && first.dropped == 0, "{first:?}");
    assert_eq!((second.completed, second.dropped), (0, second.generated), "{second:?}");
    assert!(second.generated > 100, "{second:?}");
}

#[test]
fn an_answer_that_nobody_read_gives_no_cookie() {
    // Each visitor gives up after half a second without the gateway noticing it, and retries twice.
    // All service time is therefore wasted.
    let cell = played("500ms", Closes::Hidden);
    assert!(cell.timed_out > 300 && cell.completed == 0, "{cell:?}");
    assert_eq!(cell.dropped, 0);
}

#[test]
fn an_adversary_claims_a_session_as_the_scenario_says() {
    let hits = |session| {
        let mut scenario = pages("100s");
        scenario.adversaries = vec![Adversary {
            shapes: 1,
            mimics: 0.0,
            mimics_evenly: false,
            mimics_targets: false,
            name: "walkers".into(),
            rho: 0.2,
            path: vec![0, 1],
            session,
            addresses: 1,
            patience: Distribution::Never,
            burst: 1,
            holds: TimeSpan::ZERO,
            rate: 0,
            from: TimeSpan::ZERO,
            until: TimeSpan::MAX,
        }];
        let settings = NOBODY_WITH_A_COOKIE.settings([]).expect("it has no parameters");
        let closes = Closes::Visible;
        let (settings, limit) = (&settings, &scenario.workers.into());
        let termination = TerminationSettings::default();
        let case = case(&scenario, settings, limit, &termination, closes);
        let results = play(case).hostile.expect("there are adversaries");
        (results.served() > 100, results.refused() > 100, results.served() == results.refused())
    };
    assert_eq!(hits(Claims::None), (true, false, false), "never");
    assert_eq!(hits(Claims::Own), (true, true, true), "from the first answer on");
    assert_eq!(hits(Claims::Forged), (false, true, false), "always");
}
