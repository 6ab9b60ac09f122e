//! Runs the transcripts of `leases.json` and `stops.json` against a fake daemon.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bywash_tower::{LeaseError, Leased, StopClient, StopClientStats, Token};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::steps::{Steps, step_of};
use super::{flat, text, time, vectors, why};
use crate::stop_client::{Connection, End, FakeDaemon, lease};

/// The time limit of a wait, longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// The state of the transcript that is being run.
struct Transcript {
    steps: Steps,
    script: Arc<Mutex<Script>>,
    daemon: FakeDaemon,
    stop_client: StopClient,
    /// The leases by the names of their queries, each with the record of how its connection ended.
    queries: HashMap<String, (Leased<Connection>, End)>,
    /// The number of the daemon's received lines that have been checked so far.
    checked: usize,
    /// The times at which the last lease request began and ended.
    during: [SystemTime; 2],
}

/// The behaviour of the fake daemon.
#[derive(Default)]
struct Script {
    /// The answers by the first two words of a line, or by its first word.
    answers: HashMap<String, Option<&'static str>>,
    /// A step with its token that happens before the daemon answers the next lease request.
    meanwhile: Option<(Token, Vec<Value>)>,
}

impl Script {
    fn add_answers(&mut self, answers: &Value) {
        for (words, answer) in answers.as_object().into_iter().flatten() {
            let answer = answer.as_str().map(|text| -> &'static str { text.to_owned().leak() });
            self.answers.insert(words.clone(), answer);
        }
    }

    fn reply(&mut self, words: &[&str]) -> Vec<&'static str> {
        if words[0] == "LEASE"
            && let Some((token, step)) = self.meanwhile.take()
        {
            step_of(&token, text(&step[0]), &step[2..]);
        }
        let both = self.answers.get(&format!("{} {}", words[0], words[1]));
        match both.or_else(|| self.answers.get(words[0])) {
            Some(answer) => answer.iter().copied().collect(),
            None => vec!["N OK"],
        }
    }
}

impl Transcript {
    fn new(vector: &Value) -> Self {
        let script = Arc::<Mutex<Script>>::default();
        script.lock().unwrap().add_answers(&vector["answers"]);
        let answering = Arc::clone(&script);
        let daemon = FakeDaemon::new(move |words| answering.lock().unwrap().reply(words));
        let is_there = vector["daemon"].as_bool() != Some(false);
        let stop_client =
            if is_there { daemon.stop_client() } else { StopClient::at("/nowhere/at/all") };
        let (steps, queries) = (Steps::new(), HashMap::new());
        let during = [UNIX_EPOCH; 2];
        Self { steps, script, daemon, stop_client, queries, checked: 0, during }
    }

    async fn step(&mut self, step: &[Value]) {
        let (name, args) = step.split_first().unwrap();
        match (text(name), args) {
            ("begin_nameless", [token]) => self.steps.begin_nameless(text(token)),
            ("lease", [query, token, connection, outcome]) => {
                let number = connection.as_u64().unwrap();
                self.lease(text(query), text(token), number, text(outcome)).await;
            }
            ("answers", [answers]) => self.script.lock().unwrap().add_answers(answers),
            ("meanwhile", [step]) => {
                let step = step.as_array().unwrap().clone();
                let token = self.steps.tokens[text(&step[1])][0].clone();
                self.script.lock().unwrap().meanwhile = Some((token, step));
            }
            ("release", [query, end]) => self.release(text(query), text(end)).await,
            ("lines", [expected]) => self.has_heard(expected).await,
            ("not_after", [expected]) => self.lasts(expected),
            ("stats", [expected]) => self.has_stats(expected).await,
            _ => self.steps.step(step),
        }
    }

    async fn lease(&mut self, query: &str, token: &str, number: u64, outcome: &str) {
        let token = self.steps.tokens[token][0].clone();
        let begin = SystemTime::now();
        let (leased, end) = lease(&self.stop_client, &token, number).await;
        self.during = [begin, SystemTime::now()];
        match leased {
            Ok(leased) => {
                assert_eq!(outcome, "runs");
                self.queries.insert(query.to_owned(), (leased, end));
            }
            Err(LeaseError::Taken) => assert_eq!((outcome, end.get()), ("taken", "closed")),
            // The connection was dropped and not closed, because no cancellation is aimed at it.
            Err(LeaseError::Stopped(over)) => {
                assert_eq!((outcome, end.get()), (over.reason.name(), "dropped"));
            }
        }
    }

    async fn release(&mut self, query: &str, expected: &str) {
        let (leased, end) = self.queries.remove(query).unwrap();
        let connection = leased.release().await;
        let is = if connection.is_some() { "kept" } else { "closed" };
        let ended = if connection.is_some() { "" } else { "closed" };
        assert_eq!((is, end.get()), (expected, ended));
    }

    async fn has_heard(&mut self, expected: &Value) {
        let expected: Vec<&str> = expected.as_array().unwrap().iter().map(text).collect();
        let all = self.daemon.hears(self.checked + expected.len());
        let heard = timeout(PATIENCE, all).await.expect("the daemon reads them");
        assert_eq!(heard[self.checked..], expected[..]);
        self.checked = heard.len();
    }

    /// Checks when the last lease ends, relative to the time of its request.
    fn lasts(&self, expected: &Value) {
        let line = self.daemon.last();
        let moment = line.split_once(" not-after=").map(|(_, moment)| moment);
        let Some(span) = time(expected) else {
            assert_eq!(moment, None);
            return;
        };
        let moment: u128 = moment.expect("the lease has an end").parse().unwrap();
        let [from, to] =
            self.during.map(|at| (at + span).duration_since(UNIX_EPOCH).unwrap().as_millis());
        assert!((from - 1..=to + 1).contains(&moment), "{from} {moment} {to}");
    }

    /// Waits until the counts are the expected ones. A count that is not named must be 0, and a
    /// count that is `null` may have any value.
    async fn has_stats(&self, expected: &Value) {
        for name in expected.as_object().unwrap().keys() {
            let is_known = counts(&self.stop_client).iter().any(|of| of.0 == name);
            assert!(is_known, "no count is called {name}");
        }
        let wanted = |name: &str| expected.get(name).map_or(Some(0), Value::as_u64);
        let holds = || {
            counts(&self.stop_client)
                .into_iter()
                .all(|(name, count)| wanted(name).is_none_or(|wanted| wanted == count))
        };
        let until = async {
            while !holds() {
                sleep(Duration::from_millis(1)).await;
            }
        };
        let is_so = timeout(PATIENCE, until).await.is_ok();
        assert!(is_so, "{:?} is not {expected}", self.stop_client.stats());
    }
}

/// Returns the counts of the stop client, each with the name that the vectors use for it.
fn counts(stop_client: &StopClient) -> [(&'static str, u64); 8] {
    let stats = stop_client.stats();
    let StopClientStats { leased, stopped, taken, refused, unnamed, unreachable, closed, stops } =
        stats;
    [
        ("leased", leased),
        ("stopped", stopped),
        ("taken", taken),
        ("refused", refused),
        ("unnamed", unnamed),
        ("unreachable", unreachable),
        // `closed` also counts the connections that another client has leased. `spoiled` does not.
        ("spoiled", closed - taken),
        ("stops", stops),
    ]
}

#[tokio::test]
async fn transcripts() {
    let files = ["leases.json", "stops.json"].map(|file| vectors(file, "transcripts"));
    for vector in files.into_iter().flatten() {
        // The harness shows this output only if the test fails.
        println!("{} {}", why(&vector), vector["answers"]);
        let mut transcript = Transcript::new(&vector);
        for step in flat(&vector["steps"]) {
            transcript.step(step).await;
        }
        for (leased, _end) in transcript.queries.into_values() {
            drop(leased.release().await);
        }
    }
}
